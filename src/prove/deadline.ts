import { pause } from '../service/service.ts'

/** Something did not come in time. The message says what was waited for. */
export class Overdue extends Error {
  constructor(what: string, ms: number) {
    super(`Waited ${Math.round(ms)} ms in vain until ${what}.`)
    this.name = 'Overdue'
  }
}

/** Waits for a promise, but no longer than that. */
export async function inTime<T>(awaited: Promise<T>, ms: number, what: string): Promise<T> {
  const enough = new AbortController()
  const late = pause(ms, enough.signal).then(() => {
    if (enough.signal.aborted) return awaited
    throw new Overdue(what, ms)
  })
  try {
    return await Promise.race([awaited, late])
  } finally {
    enough.abort()
  }
}

/** Asks again and again until the answer is neither undefined nor false, but no longer than that. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { ms, what, everyMs = 25 }: { ms: number; what: string; everyMs?: number },
): Promise<T> {
  const untilMs = performance.now() + ms
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() >= untilMs) throw new Overdue(what, ms)
    await pause(everyMs)
  }
}
