import { expect, test } from 'vitest'
import { makePace } from './pace.ts'

test('a worker that has started nothing yet claims nothing ahead', () => {
  expect(makePace().ahead()).toBe(0)
})

test('a worker claims ahead what it will start within a moment, by the rate that it has just seen', () => {
  const pace = makePace()
  pace.reset(0)
  pace.started(100, 10)
  expect(pace.ahead()).toBe(500)
})

test('one slow stretch halves the pace, and a quick one raises it at once', () => {
  const pace = makePace()
  pace.reset(0)
  pace.started(100, 10)
  pace.started(1, 1_010)
  expect(pace.ahead()).toBe(250)
  pace.started(200, 1_020)
  expect(pace.ahead()).toBe(1_000)
})

test('once there was nothing to claim, the pace begins anew', () => {
  const pace = makePace()
  pace.reset(0)
  pace.started(100, 10)
  pace.reset(20)
  expect(pace.ahead()).toBe(0)
})
