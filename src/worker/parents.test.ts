import { expect, test } from 'vitest'
import type { Runner } from '../postgres/store.ts'
import { Parents } from './parents.ts'

/** A database that records the reads, and fails on demand. */
function counting(input = '{}', isAway = () => false) {
  const asked: string[] = []
  const run = async (_statement: unknown, { barrierId }: { barrierId: string }) => {
    asked.push(barrierId)
    if (isAway()) throw new Error('The database is away.')
    return [{ id: `job of ${barrierId}`, input }]
  }
  return { asked, parents: new Parents({ run } as unknown as Runner) }
}

test('a parent is read once, however many items ask for it at once or later', async () => {
  const { asked, parents } = counting()
  await Promise.all(Array.from({ length: 50 }, () => parents.of('b')))
  expect(await parents.of('b')).toEqual({ id: 'job of b', input: '{}' })
  expect(asked).toEqual(['b'])
})

test('a failed read is repeated', async () => {
  let isAway = true
  const { asked, parents } = counting('{}', () => isAway)
  await expect(parents.of('b')).rejects.toThrow('away')
  isAway = false
  await parents.of('b')
  expect(asked).toEqual(['b', 'b'])
})

test('the number and the total size of cached parents are limited', async () => {
  const many = counting()
  for (let n = 0; n <= 200; n++) await many.parents.of(String(n))
  await many.parents.of('0')
  await many.parents.of('200')
  expect(many.asked).toHaveLength(202)
  const large = counting('x'.repeat(6_000_000))
  for (const id of ['a', 'b', 'c', 'c', 'a']) await large.parents.of(id)
  expect(large.asked).toEqual(['a', 'b', 'c', 'a'])
})
