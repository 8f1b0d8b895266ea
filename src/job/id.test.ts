import { expect, test } from 'vitest'
import { freshJobId, parseJobId } from './id.ts'

test('ids sort by the order in which they were made', () => {
  const ids = Array.from({ length: 1000 }, freshJobId)
  expect([...ids].sort()).toEqual(ids)
  expect(new Set(ids).size).toBe(1000)
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
