import { pause } from '../service/service.ts'

/** Something did not happen in time. The message says what was waited for. */
export class TimedOut extends Error {
  constructor(what: string, ms: number) {
    super(`Timed out after ${Math.round(ms)} ms of waiting until ${what}.`)
    this.name = 'TimedOut'
  }
}

/** Waits for a promise, but no longer than that. */
export async function inTime<T>(awaited: Promise<T>, ms: number, what: string): Promise<T> {
  const enough = new AbortController()
  const late = pause(ms, enough.signal).then(() => {
    if (enough.signal.aborted) return awaited
    throw new TimedOut(what, ms)
  })
  try {
    return await Promise.race([awaited, late])
  } finally {
    enough.abort()
  }
}

/** Asks repeatedly until the answer is neither undefined nor false, but no longer than that. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { ms, what, everyMs = 25 }: { ms: number; what: string; everyMs?: number },
): Promise<T> {
  const untilMs = performance.now() + ms
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() >= untilMs) throw new TimedOut(what, ms)
    await pause(everyMs)
  }
}
