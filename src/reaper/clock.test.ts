import { expect, test } from 'vitest'
import { DatabaseClock } from './clock.ts'

const look = (askedMs: number, aheadMs: number, tookMs = 2) => ({
  nowMs: askedMs + tookMs / 2 + aheadMs,
  askedMs,
  heardMs: askedMs + tookMs,
})

test('a clock that is never set is steady forever, and watched from the first look on', () => {
  const clock = new DatabaseClock()
  expect(clock.watchedMs(1_000)).toBe(0)
  expect([0, 250, 500].map((atMs) => clock.note(look(atMs, 7_000)))).toEqual([0, 0, 0])
  expect(clock.steadyMs(1_000)).toBe(Number.POSITIVE_INFINITY)
  expect(clock.watchedMs(1_002)).toBe(1_000)
})

test('a clock that is set forward or back is noticed once, and watched again', () => {
  const clock = new DatabaseClock()
  clock.note(look(0, 0))
  expect(clock.note(look(1_000, 60_000))).toBeCloseTo(60_000, -1)
  expect(clock.note(look(2_000, 60_000))).toBe(0)
  expect(clock.steadyMs(3_002)).toBe(2_000)
  expect(clock.note(look(4_000, -60_000))).toBeCloseTo(-120_000, -1)
  expect([clock.steadyMs(4_502), clock.watchedMs(4_502)]).toEqual([500, 500])
})

test('an answer that takes long is no step, and neither is a clock that runs a little fast', () => {
  const clock = new DatabaseClock()
  clock.note(look(0, 0))
  expect(clock.note(look(1_000, 0, 20_000))).toBe(0)
  expect(clock.note(look(30_000, 400))).toBe(0)
  expect(clock.steadyMs(40_000)).toBe(Number.POSITIVE_INFINITY)
})
