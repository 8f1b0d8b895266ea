import { expect, test } from 'vitest'
import { Buckets } from './buckets.ts'

test('a burst is let through, what comes after it must wait, and what is given back may come again', () => {
  const buckets = new Buckets<string>({ perSecond: 0.001, burst: 2, most: 10 })
  expect([buckets.take('a'), buckets.take('a')]).toEqual([0, 0])
  expect(buckets.take('a')).toBeGreaterThan(100_000)
  expect(buckets.take('b')).toBe(0)
  buckets.giveBack('a')
  expect(buckets.take('a')).toBe(0)
})

test('strangers without end do not make those who were here lately start afresh', () => {
  const buckets = new Buckets<string>({ perSecond: 0.001, burst: 1, most: 10 })
  expect(buckets.take('flooder')).toBe(0)
  for (let index = 0; index < 100; index++) {
    buckets.take(`stranger-${index}`)
    expect(buckets.take('flooder')).toBeGreaterThan(0)
  }
})
