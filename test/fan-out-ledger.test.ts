import { defineJob } from 'holdfast'
import { claimItems, fail, finish, producing, seal, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'
import type { Running } from './given.ts'
import { endWait } from './places.ts'

test('a counter that is too high joins nothing while an item is live', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 4, tolerate: { count: 4 } })
  const [one, two, ...others] = (await claimItems({ given }, made)) as [Running, Running, ...Running[]]
  await query('update holdfast.barrier set succeeded = 3')
  expect((await hf.audit()).violations).toMatchObject([{ invariant: 'counters-match-ledger' }])
  expect((await hf.why(made.parent.id)).disagreements).toContain(
    'The barrier counts 3 succeeded, 0 failed, 0 cancelled; its ledger has 0 succeeded, 0 failed, 0 cancelled.',
  )
  await finish(store, [one])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  // counted anew although it is anything but quiet
  expect((await sweepOf(store)).healed).toMatchObject([{ orphan: 'counter-drift' }])
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 1, failed: 0 }])
  await fail(store, [two])
  await finish(store, others)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 3, failed: 1 }])
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toHaveLength(1)
})

test('a fan-out that is cancelled with counters too high ends with those of its items', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 4 })
  const [one] = (await claimItems({ given }, made)) as [Running]
  await finish(store, [one])
  await query('update holdfast.barrier set succeeded = 4')
  await hf.cancel(made.parent.id)
  expect(
    await query('select succeeded, failed, cancelled, joined_at is null as is_open from holdfast.barrier'),
  ).toEqual([{ succeeded: 1, failed: 0, cancelled: 3, is_open: false }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a counter of failed items that is too high stops nothing', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3, tolerate: { count: 1 } })
  const [one, ...others] = (await claimItems({ given }, made)) as [Running, ...Running[]]
  await query('update holdfast.barrier set failed = 1')
  expect(await fail(store, [one])).toMatchObject([{ stopped: null }])
  await sweepOf(store)
  await finish(store, others)
  expect(await hf.items(made.parent.id, { state: 'cancelled' })).toEqual([])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
})

test('a barrier that has joined with a live item is told by audit and why', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 2 })
  await query(`update holdfast.barrier set joined_at = now(), succeeded = 2`)
  await endWait(query, made.parent.id)
  expect((await hf.audit()).violations).toMatchObject([{ invariant: 'joined-has-ended' }])
  expect((await hf.why(made.parent.id)).disagreements).toContain(
    'The barrier says it has joined (2 of 2); one of its items is live.',
  )
})

test('a counter that is too high before the seal joins nothing, and the seal puts it right', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await producing({ given, store }, { items: 2 })
  await query('update holdfast.barrier set succeeded = 2')
  await seal(store, made)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 0, total: 2 }])
})

test('a join is told what the ledger says, whatever the counters say', async ({ open, query }) => {
  const go = gate()
  const counted = defineJob('counted', {
    stages: [
      {
        name: 'all',
        fanOut: () => [1, 2, 3],
        each: async (_, n) => {
          if (n === 3) await go.promise
        },
      },
    ],
  })
  const hf = await open({ jobs: [counted], concurrency: 4 })
  await hf.work()
  const handle = await hf.submit(counted, null)
  await until(async () => (await hf.fanOuts(handle.id))[0]?.succeeded === 2, 'two items have ended')
  await query('update holdfast.barrier set succeeded = 9')
  go.open()
  expect(await handle.result()).toMatchObject({ output: { total: 3, succeeded: 3, failed: 0, cancelled: 0 } })
  expect((await hf.audit()).violations).toEqual([])
})

test('a barrier that a hand has joined early waits for its items after all', async ({ open, query }) => {
  const go = gate()
  const early = defineJob('early', {
    stages: [{ name: 'all', fanOut: () => [1, 2], each: () => go.promise, join: (_, { succeeded }) => succeeded }],
  })
  const hf = await open({ jobs: [early], concurrency: 4 })
  await hf.work()
  const handle = await hf.submit(early, null)
  await until(async () => (await hf.get(handle.id))?.state === 'waiting', 'the parent waits')
  // the reaper finds that no open barrier is left to wait for, and lets the join have its look
  await query(`update holdfast.barrier set joined_at = now(), succeeded = 2`)
  await until(
    async () => (await hf.timeline(handle.id)).filter(({ type }) => type === 'job.fanned_out').length === 2,
    'it is armed again',
  )
  go.open()
  expect(await handle.result()).toMatchObject({ output: 2 })
  expect((await hf.audit()).violations).toEqual([])
})
