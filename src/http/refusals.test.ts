import { expect, test, vi } from 'vitest'
import { Refusals } from './refusals.ts'

const limits = { httpKeyTries: 1, httpRefusalMs: 1_000 }

test('an address that is refused too often waits for its refusals, and no other address does', async () => {
  vi.useFakeTimers()
  const refusals = new Refusals(limits, new AbortController().signal)
  for (let turn = 0; turn < 10; turn++) expect(refusals.delay('10.0.0.1')).toBe(undefined)
  const late = refusals.delay('10.0.0.1')
  expect([refusals.held, refusals.delay('10.0.0.2')]).toEqual([1, undefined])
  vi.advanceTimersByTime(1_000)
  await late
  expect(refusals.held).toBe(0)
  vi.useRealTimers()
})

test('only so many refusals wait, and none when the server stops', async () => {
  const stopping = new AbortController()
  const refusals = new Refusals({ ...limits, httpRefusalMs: 60_000 }, stopping.signal)
  const all = Array.from({ length: 2_000 }, () => refusals.delay('10.0.0.1'))
  expect(refusals.held).toBe(1_000)
  stopping.abort()
  await Promise.all(all)
  expect(refusals.held).toBe(0)
})
