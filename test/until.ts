import { setTimeout as wait } from 'node:timers/promises'

/** Asks again and again until the answer is neither false, null nor undefined, and gives it. */
export async function until<T>(
  ask: () => T | Promise<T>,
  what = 'what the test waits for',
  withinMs = 15_000,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== null && answer !== undefined)
      return answer as Exclude<T, false | null | undefined>
    if (performance.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}.`)
    await wait(5)
  }
}

/** A promise with its handles, for a handler that the test holds back or hears from. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    open = resolve
  })
  return { promise, open }
}
