import { expect, test } from 'vitest'
import { SkippedDeliveries } from './skipped.ts'

test('a delivery is skipped for a minute, and for longer each time that it fails again', () => {
  const skipped = new SkippedDeliveries()
  skipped.add(['a'], 0)
  expect(skipped.at(59_999)).toEqual(['a'])
  expect(skipped.at(60_000)).toEqual([])
  skipped.add(['a'], 61_000)
  expect(skipped.at(61_000 + 119_999)).toEqual(['a'])
  expect(skipped.at(61_000 + 120_000)).toEqual([])
})

test('only so many are skipped: the ones that were found first are tried again first', () => {
  const skipped = new SkippedDeliveries()
  skipped.add(
    Array.from({ length: 10_001 }, (_, n) => `delivery-${n}`),
    0,
  )
  expect(skipped.at(1)).toHaveLength(10_000)
  expect(skipped.at(1)).not.toContain('delivery-0')
})
