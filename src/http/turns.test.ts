import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

function workFor(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

test('a turn has time until half a millisecond of it is used, and so has the next one', async () => {
  const turns = new Turns()
  expect(turns.hasTime()).toBe(true)
  workFor(1)
  expect(turns.hasTime()).toBe(false)
  await nextTurn()
  expect(turns.hasTime()).toBe(true)
})

test('an owner with little work passes one with much, and each keeps its order', async () => {
  const turns = new Turns()
  const [much, little] = [{}, {}]
  const done: string[] = []
  const add = (owner: object, name: string) =>
    turns.add(owner, () => {
      done.push(name)
      workFor(0.2)
    })
  for (let index = 0; index < 20; index++) add(much, `much ${index}`)
  for (let index = 0; index < 2; index++) add(little, `little ${index}`)
  expect(done).toEqual([])
  expect(turns.hasTime()).toBe(false)
  let most = 0
  while (done.length < 22) {
    const before = done.length
    await nextTurn()
    most = Math.max(most, done.length - before)
  }
  expect(done.slice(0, 5)).toEqual(['much 0', 'little 0', 'much 1', 'little 1', 'much 2'])
  expect(done.slice(5)).toEqual(Array.from({ length: 17 }, (_, index) => `much ${index + 3}`))
  expect(most).toBeLessThanOrEqual(3)
})
