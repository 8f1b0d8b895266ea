import { expect, test } from 'vitest'
import { FairGate } from './fair-gate.ts'

test('each owner has one place, and whoever has much waits behind whoever has little', async () => {
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
