import { setTimeout as wait } from 'node:timers/promises'

/** Asks repeatedly until the answer is neither false, null nor undefined, and returns it. */
export async function until<T>(
  ask: () => T | Promise<T>,
  what: string | (() => string) = 'what the test waits for',
  withinMs = 15_000,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== null && answer !== undefined)
      return answer as Exclude<T, false | null | undefined>
    if (performance.now() > deadline)
      throw new Error(`Not within ${withinMs} ms: ${typeof what === 'string' ? what : what()}.`)
    await wait(5)
  }
}

/** A promise that the test or a handler resolves. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    open = resolve
  })
  return { promise, open }
}
