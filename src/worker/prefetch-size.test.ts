import { expect, test } from 'vitest'
import { makePrefetchSize } from './prefetch-size.ts'

test('a worker that has started nothing yet claims nothing ahead', () => {
  expect(makePrefetchSize().ahead()).toBe(0)
})

test('a worker claims ahead what it will start within a moment, at the rate that it has just seen', () => {
  const prefetchSize = makePrefetchSize()
  prefetchSize.reset(0)
  prefetchSize.started(100, 10)
  expect(prefetchSize.ahead()).toBe(500)
})

test('a slow stretch halves the prefetch size, and a fast one raises it at once', () => {
  const prefetchSize = makePrefetchSize()
  prefetchSize.reset(0)
  prefetchSize.started(100, 10)
  prefetchSize.started(1, 1_010)
  expect(prefetchSize.ahead()).toBe(250)
  prefetchSize.started(200, 1_020)
  expect(prefetchSize.ahead()).toBe(1_000)
})

test('once there was nothing to claim, the prefetch size starts from zero', () => {
  const prefetchSize = makePrefetchSize()
  prefetchSize.reset(0)
  prefetchSize.started(100, 10)
  prefetchSize.reset(20)
  expect(prefetchSize.ahead()).toBe(0)
})
