import { expect, test } from 'vitest'
import { group, mostWeight } from './group.ts'

/** A group whose writes end when the test says so. */
function heldGroup(options: { most?: number; lanes?: number } = {}) {
  const writes: { items: number[]; end: (answers?: number[]) => void; fail: (error: Error) => void }[] = []
  const held = group<number, number>({
    most: options.most ?? 100,
    lanes: options.lanes ?? 1,
    write: (items) =>
      new Promise((resolve, reject) => {
        writes.push({ items, end: (answers = items.map((item) => item * 10)) => resolve(answers), fail: reject })
      }),
  })
  return { held, writes }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('a lone item leaves at the end of the current turn: it waits for nobody', async () => {
  const { held, writes } = heldGroup()
  const answer = held.add(1)
  expect(writes).toHaveLength(0)
  await turn()
  expect(writes.map(({ items }) => items)).toEqual([[1]])
  writes[0]?.end()
  expect(await answer).toBe(10)
})

test('items of one turn travel together, and each gets its own answer', async () => {
  const { held, writes } = heldGroup()
  const answers = Promise.all([1, 2, 3].map((item) => held.add(item)))
  await turn()
  writes[0]?.end()
  expect(writes).toHaveLength(1)
  expect(await answers).toEqual([10, 20, 30])
})

test('what comes while all lanes are busy leaves together as soon as one is free', async () => {
  const { held, writes } = heldGroup({ lanes: 2 })
  const first = held.add(1)
  await turn()
  void held.add(2)
  await turn()
  const later = [3, 4, 5].map((item) => held.add(item))
  await turn()
  expect(writes.map(({ items }) => items)).toEqual([[1], [2]])
  writes[0]?.end()
  await first
  await turn()
  expect(writes[2]?.items).toEqual([3, 4, 5])
  for (const write of writes.slice(1)) write.end()
  expect(await Promise.all(later)).toEqual([30, 40, 50])
})

test('a batch is never larger than it may be', async () => {
  const { held, writes } = heldGroup({ most: 2, lanes: 3 })
  for (const item of [1, 2, 3, 4, 5]) void held.add(item)
  await turn()
  expect(writes.map(({ items }) => items)).toEqual([[1, 2], [3, 4], [5]])
})

test('a write that fails is told to those who travelled in it, and the next one goes on', async () => {
  const { held, writes } = heldGroup()
  const lost = held.add(1)
  await turn()
  const next = held.add(2)
  writes[0]?.fail(new Error('broken'))
  await expect(lost).rejects.toThrow('broken')
  await turn()
  writes[1]?.end()
  expect(await next).toBe(20)
})

test('a group is idle when nothing waits and nothing is under way', async () => {
  const { held, writes } = heldGroup()
  await held.idle()
  void held.add(1)
  void held.add(2)
  expect(held.size).toBe(2)
  let isIdle = false
  const idle = held.idle().then(() => {
    isIdle = true
  })
  await turn()
  expect([held.size, isIdle]).toEqual([2, false])
  writes[0]?.end()
  await idle
  expect(held.size).toBe(0)
})

test('a caller that throws when told its answer keeps no other from being told', async () => {
  const { held, writes } = heldGroup()
  const told: unknown[] = []
  const thrown = new Promise((resolve) => process.setUncaughtExceptionCaptureCallback(resolve))
  for (const item of [1, 2, 3])
    held.put(
      item,
      (answer) => {
        told.push(answer)
        if (item === 2) throw new Error('broken')
      },
      (error) => told.push(error),
    )
  await turn()
  writes[0]?.end()
  expect(await thrown).toMatchObject({ message: 'broken' })
  process.setUncaughtExceptionCaptureCallback(null)
  expect(told).toEqual([10, 20, 30])
  expect(held.size).toBe(0)
})

test('items that are too heavy together do not travel together, but each travels', async () => {
  const writes: number[][] = []
  const heavy = group<number, number>({
    most: 100,
    lanes: 1,
    weightOf: (item) => item,
    write: async (items) => {
      writes.push(items)
      return items
    },
  })
  const half = mostWeight / 2
  await Promise.all([half, half, 1, 2 * mostWeight, 1, half].map((item) => heavy.add(item)))
  expect(writes).toEqual([[half, half], [1], [2 * mostWeight], [1, half]])
})
