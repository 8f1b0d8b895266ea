import { expect, test } from 'vitest'
import type { ClaimedRow } from './claim-batch.ts'
import { handoverMemory, Seizer, Taker } from './handover.ts'
import { PrefetchBuffer, type Prefetched } from './prefetch-buffer.ts'

function makeBoth() {
  const memory = handoverMemory()
  const told: Prefetched[] = []
  const taker = new Taker(memory)
  return { seizer: new Seizer(memory), taker, told, waiting: new PrefetchBuffer(taker, (jobs) => told.push(jobs)) }
}

const row = (id: string, attempt = 1) =>
  ({ id, attempt, sessionId: 7, leaseId: 5, slot: id.charCodeAt(0) - 97, leaseSize: 9 }) as ClaimedRow

test('a job that the main thread has taken is not seized, and what was seized is not taken', () => {
  const { seizer, told, waiting } = makeBoth()
  waiting.push(
    ['a', 'b', 'c'].map((id) => row(id)),
    true,
  )
  expect(told).toEqual([
    { from: 0, sessionId: 7, ids: 'a,b,c', attempts: '', leases: '5,5,5', slots: '0,1,2', sizes: '9,9,9' },
  ])
  expect(waiting.shift()?.id).toBe('a')
  expect(seizer.seize(0, 3)).toBe(false)
  expect(seizer.cursor()).toBe(1)
  expect(seizer.seize(1, 3)).toBe(true)
  expect(waiting.shift()).toBe(undefined)
  expect(waiting.size).toBe(0)
  expect(seizer.cursor()).toBe(3)
})

test('jobs that the heartbeat thread had not heard of stay with the main thread', () => {
  const { seizer, told, waiting } = makeBoth()
  waiting.push([row('a'), row('b')], true)
  waiting.push([row('c', 4)], false)
  expect(told.at(-1)).toEqual({ from: 2, sessionId: 7, ids: 'c', attempts: '4', leases: '5', slots: '2', sizes: '9' })
  expect(seizer.seize(0, 2)).toBe(true)
  expect(waiting.shift()?.id).toBe('c')
  expect(waiting.shift()).toBe(undefined)
})

test('what is removed is not seized, and what stays is announced again', () => {
  const { seizer, told, waiting } = makeBoth()
  waiting.push(
    ['a', 'b', 'c'].map((id) => row(id)),
    true,
  )
  expect(waiting.remove(({ id }) => id === 'b').map(({ id }) => id)).toEqual(['b'])
  expect(told.at(-1)).toEqual({
    from: 3,
    sessionId: 7,
    ids: 'a,c',
    attempts: '',
    leases: '5,5',
    slots: '0,2',
    sizes: '9,9',
  })
  expect(seizer.seize(0, 3)).toBe(false)
  expect(seizer.seize(3, 5)).toBe(true)
  expect(waiting.remove(() => true)).toEqual([])
  expect(waiting.size).toBe(0)
})

test('a claim is answered or seized, and while it is seized there is no other', () => {
  const { seizer, taker } = makeBoth()
  const first = taker.beginClaim() as number
  expect(taker.endClaim()).toBe(true)
  expect(seizer.seizeClaim(first)).toBe(false)
  const second = taker.beginClaim() as number
  expect(seizer.seizeClaim(second)).toBe(true)
  expect(taker.endClaim()).toBe(false)
  expect(taker.beginClaim()).toBe(null)
  seizer.putBackClaim()
  expect(taker.beginClaim()).not.toBe(null)
})
