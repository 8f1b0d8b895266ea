import { expect, test } from 'vitest'
import { LookSchedule } from './look-schedule.ts'

test('what is urgent is due at once, and what was looked for often is due later than what is new', () => {
  const schedule = new LookSchedule<string>()
  schedule.add('old', 100, 0)
  schedule.add('young', 1, 0)
  expect(schedule.take(10, 1)).toEqual([])
  expect(schedule.nextDueMs()).toBe(2)
  expect(schedule.take(10, 2)).toEqual(['young'])
  expect(schedule.nextDueMs()).toBe(500)
  schedule.hurry('old')
  expect(schedule.take(10, 2)).toEqual(['old'])
  expect(schedule.nextDueMs()).toBe(Number.POSITIVE_INFINITY)
})

test('no more are taken than asked for, and what was deleted is not', () => {
  const schedule = new LookSchedule<string>()
  for (const one of ['a', 'b', 'c', 'd']) schedule.hurry(one)
  schedule.delete('b')
  expect(schedule.take(2, 0)).toEqual(['a', 'c'])
  expect(schedule.take(2, 0)).toEqual(['d'])
})

test('a flood of young waits does not keep old ones from their turn', () => {
  const schedule = new LookSchedule<string>()
  schedule.add('old', 100, 0)
  const seen = new Set<string>()
  for (let turn = 0; turn < 2; turn++) {
    for (let index = 0; index < 10; index++) schedule.add(`young-${turn}-${index}`, 1, 0)
    for (const one of schedule.take(10, 1_000)) seen.add(one)
  }
  expect(seen).toContain('old')
})
