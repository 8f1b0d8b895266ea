import { expect, test } from 'vitest'
import { loop, pause, within } from './service.ts'

const forever = 1_000_000

/** A loop whose turns the test can count and await. */
function countedLoop(turnOf: (count: number) => number | Promise<number> = () => forever) {
  let count = 0
  let reached: { count: number; resolve: () => void }[] = []
  const errors: unknown[] = []
  const running = loop({
    turn: async () => {
      count += 1
      for (const one of reached) if (count >= one.count) one.resolve()
      reached = reached.filter((one) => count < one.count)
      return turnOf(count)
    },
    onError: (error) => errors.push(error),
    errorPauseMs: 1,
  })
  const turns = (wanted: number) =>
    count >= wanted ? Promise.resolve() : new Promise<void>((resolve) => reached.push({ count: wanted, resolve }))
  return { running, turns, errors, count: () => count }
}

test('a pause ends early when its signal fires, and at once when it has fired already', async () => {
  const stop = new AbortController()
  const paused = pause(forever, stop.signal)
  stop.abort()
  await paused
  await pause(forever, stop.signal)
})

test('waiting within a time says whether what was awaited came', async () => {
  expect(await within(forever, Promise.resolve())).toBe(true)
  expect(await within(1, new Promise(() => {}))).toBe(false)
})

test('a wake cuts the wait between two turns short', async () => {
  const { running, turns } = countedLoop()
  await running.start()
  await turns(1)
  running.wake()
  await turns(2)
  await running.stop()
})

test('a wake during a turn is not lost', async () => {
  let wake = () => {}
  const { running, turns } = countedLoop((count) => {
    if (count === 1) wake()
    return forever
  })
  wake = () => running.wake()
  await running.start()
  await turns(2)
  await running.stop()
})

test('a turn that throws is reported, and the loop goes on', async () => {
  const { running, turns, errors } = countedLoop((count) => {
    if (count <= 2) throw new Error(`turn ${count}`)
    return forever
  })
  await running.start()
  await turns(3)
  await running.stop()
  expect(errors).toHaveLength(2)
})

test('a stop waits for the turn under way, and no turn follows it', async () => {
  let end = (_: number) => {}
  const { running, turns, count } = countedLoop(
    () =>
      new Promise((resolve) => {
        end = resolve
      }),
  )
  await running.start()
  await turns(1)
  let isStopped = false
  const stopped = running.stop().then(() => {
    isStopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isStopped).toBe(false)
  end(0)
  await stopped
  expect(count()).toBe(1)
})

test('starting twice runs one loop, and stopping twice is harmless', async () => {
  const { running, turns, count } = countedLoop()
  await Promise.all([running.start(), running.start()])
  await turns(1)
  await Promise.all([running.stop(), running.stop()])
  expect(count()).toBe(1)
})
