import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const backoff = { baseMs: 1000, factor: 2, maxMs: 60_000 }
const middle = () => 0.5

test('the wait grows by its factor with each failure, up to its maximum', () => {
  const waits = [1, 2, 3, 4, 7, 50].map((failures) => backoffMs(failures, backoff, middle))
  expect(waits).toEqual([1000, 2000, 4000, 8000, 52_500, 52_500])
})

test('waits are spread by a quarter to either side, so that a herd does not return at once', () => {
  expect(backoffMs(1, backoff, () => 0)).toBe(750)
  expect(backoffMs(1, backoff, () => 1)).toBe(1250)
})

test('no wait is longer than the maximum, and at the maximum waits are still spread', () => {
  expect([0, 1].map((drawn) => backoffMs(50, backoff, () => drawn))).toEqual([45_000, 60_000])
  expect(backoffMs(6, { ...backoff, maxMs: 33_000 }, () => 1)).toBe(33_000)
})

test('no number of failures makes a wait that is not a number', () => {
  for (const failures of [0, 1, 100, 10_000, Number.MAX_SAFE_INTEGER])
    for (const baseMs of [0, 1000]) expect(Number.isFinite(backoffMs(failures, { ...backoff, baseMs }))).toBe(true)
})
