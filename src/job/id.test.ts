import { expect, test } from 'vitest'
import { firstIdAt, freshJobId, parseJobId, timeOfId } from './id.ts'

test('ids sort by the order in which they were made', () => {
  const ids = Array.from({ length: 1000 }, freshJobId)
  expect([...ids].sort()).toEqual(ids)
  expect(new Set(ids).size).toBe(1000)
})

test('an id tells the time of its submit', () => {
  const at = new Date('2026-11-16T12:00:00.123Z')
  expect(timeOfId(firstIdAt(at))).toEqual(at)
})

test('an id in capitals is the same id', () => {
  const id = freshJobId()
  expect(parseJobId(id.toUpperCase())).toBe(id)
})

test.for([
  '',
  'x',
  '42',
  '01890a5d',
  '01890a5dac96774bbcceb302099a8057',
  ` ${freshJobId()}`,
  `${freshJobId()}\n`,
  `${freshJobId()}'--`,
])('%j is no id', (word) => {
  expect(parseJobId(word)).toBe(null)
})
