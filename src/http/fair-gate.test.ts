import { expect, test } from 'vitest'
import { FairGate } from './fair-gate.ts'

test('each owner has one place, and owners with many requests wait behind those with few', async () => {
  const gate = new FairGate(2)
  const order: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => () =>
    new Promise<void>((resolve) => {
      order.push(name)
      ends.push(resolve)
    })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => gate.run(name[0] as string, work(name)))
  await turn()
  expect(order).toEqual(['a1', 'b1'])
  ends[0]?.()
  await turn()
  expect(order).toEqual(['a1', 'b1', 'a2'])
  ends[1]?.()
  await turn()
  expect(order).toEqual(['a1', 'b1', 'a2', 'c1'])
  ends[2]?.()
  ends[3]?.()
  await turn()
  ends[4]?.()
  await Promise.all(all)
  expect(order).toEqual(['a1', 'b1', 'a2', 'c1', 'a3'])
})

test('work that fails makes room for the next', async () => {
  const gate = new FairGate(1)
  const failed = gate.run('a', () => Promise.reject(new Error('broken')))
  const next = gate.run('a', async () => 'done')
  await expect(failed).rejects.toThrow('broken')
  expect(await next).toBe('done')
})

test('an owner may be given more than one place, and leaves the others to others', async () => {
  const gate = new FairGate(3, { each: 2 })
  const order: string[] = []
  const work = (name: string) => () => new Promise<void>(() => order.push(name))
  for (const name of ['a1', 'a2', 'a3', 'b1']) void gate.run(name[0] as string, work(name))
  await new Promise((resolve) => setImmediate(resolve))
  expect(order).toEqual(['a1', 'a2', 'b1'])
})

test('an owner that has to rest keeps others from nothing', async () => {
  const gate = new FairGate(1, { rests: () => true })
  const order: string[] = []
  const work = (name: string, ms: number) => () =>
    new Promise<void>((resolve) => {
      order.push(name)
      setTimeout(resolve, ms)
    })
  const sinceMs = performance.now()
  const all = [gate.run('a', work('a1', 40)), gate.run('a', work('a2', 0)), gate.run('b', work('b1', 0))]
  await Promise.all([all[0], all[2]])
  expect(order).toEqual(['a1', 'b1'])
  await all[1]
  expect(performance.now() - sinceMs).toBeGreaterThanOrEqual(75)
})
