import { expect, test } from 'vitest'
import { durationMs } from './duration.ts'

test('a duration is a number of milliseconds, or an amount with a unit', () => {
  expect([0, 1500, '250ms', '90s', '5m', '12h', '1.5d', ' 2 w '].map(durationMs)).toEqual([
    0, 1500, 250, 90_000, 300_000, 43_200_000, 129_600_000, 1_209_600_000,
  ])
})

test('what is no duration is not taken for one', () => {
  expect([-1, 1.5, Number.NaN, '', '30', 'd', '-1d', '1 day', null, undefined].map(durationMs)).toEqual(
    Array.from({ length: 10 }, () => undefined),
  )
})
