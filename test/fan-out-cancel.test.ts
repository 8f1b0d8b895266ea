import { defineJob } from 'holdfast'
import { claimItems, fail, finish, producing, seal, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('a cancel of the parent cancels its queued items in one statement and aborts the running ones', async ({
  open,
  query,
}) => {
  const started = gate<AbortSignal>()
  const wide = defineJob('wide', {
    stages: [
      {
        name: 'all',
        fanOut: () => Array.from({ length: 500 }, (_, n) => n),
        each: ({ signal }) => {
          started.open(signal)
          return new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
      },
    ],
  })
  // a heartbeat so long that only the abort's own news can be in time
  const hf = await open({ jobs: [wide], concurrency: 1, heartbeatMs: 10_000, lostAfterMs: 20_000, leaseMs: 30_000 })
  await hf.work()
  const { id } = await hf.submit(wide, null)
  const signal = await started.promise
  await until(async () => (await hf.get(id))?.state === 'waiting', 'the parent waits')
  await hf.cancel(id, { reason: 'enough' })
  expect(await hf.get(id)).toMatchObject({ state: 'cancelled' })
  await until(() => signal.aborted, 'the running item is aborted')
  expect(
    await query(
      `select state, count(*)::int as n, count(distinct finished_at)::int as moments from holdfast.job_status where finished_at is not null group by 1`,
    ),
  ).toEqual([{ state: 'cancelled', n: 501, moments: 1 }])
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
  expect((await hf.items(id, { limit: 1 }))[0]).toMatchObject({ state: 'cancelled', error: { message: 'enough' } })
  expect((await hf.timeline(id)).map(({ type }) => type)).not.toContain('job.joined')
  expect((await hf.audit()).violations).toEqual([])
})

test('a cancel reaches the items of items', async ({ open, query }) => {
  const started = gate<AbortSignal>()
  const inner = defineJob('inner', {
    stages: [
      {
        name: 'all',
        fanOut: () => [1, 2],
        each: ({ signal }) => {
          started.open(signal)
          return new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
      },
    ],
  })
  const outer = defineJob('outer', { stages: [{ name: 'all', fanOut: () => [1, 2, 3], each: inner }] })
  const hf = await open({ jobs: [inner, outer], concurrency: 20 })
  await hf.work()
  const { id } = await hf.submit(outer, null)
  const signal = await started.promise
  await until(
    async () =>
      (await query(`select from holdfast.job_status where finished_at is null and state = 'waiting'`)).length === 4,
    'the parent and its three items wait',
  )
  await hf.cancel(id)
  await until(() => signal.aborted, 'an inner item is aborted')
  expect(await query('select state, count(*)::int as n from holdfast.job_status group by 1')).toEqual([
    { state: 'cancelled', n: 10 },
  ])
  expect((await hf.audit()).violations).toEqual([])
})

test('a cancel of one item settles it, and the join fires after the others', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3, tolerate: { count: 1 } })
  const [one, ...others] = await claimItems({ given }, made)
  await hf.cancel(one?.id as string)
  expect(await finish(store, [one as never])).toMatchObject([{ count: 0, places: null }])
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ total: 3, cancelled: 1, succeeded: 0 }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  await finish(store, others)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ cancelled: 1, succeeded: 2, isComplete: true }])
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toHaveLength(1)
})

test('a cancel of the last item fires the join', async ({ given, store, hf }) => {
  const made = await waiting({ given, store }, { items: 1, tolerate: { share: 1 } })
  await hf.cancel(made.items[0] as string)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
})

test('a late result cannot bring a cancelled job back, nor its parent', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 2 })
  const items = await claimItems({ given }, made)
  await hf.cancel(made.parent.id)
  expect(await finish(store, items)).toMatchObject([{ count: 0, places: null }])
  expect(await fail(store, items)).toMatchObject([{ count: 0, places: null }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'cancelled', outputs: {} })
  for (const id of made.items) expect(await hf.get(id)).toMatchObject({ state: 'cancelled', outputs: {} })
  expect(await query(`select from holdfast.event where type in ('job.joined', 'job.finished', 'job.failed')`)).toEqual(
    [],
  )
})

test('a cancel that races with the last settles leaves the parent cancelled and nothing alive', {
  timeout: 60_000,
}, async ({ given, store, hf, query }) => {
  for (let round = 0; round < 40; round++) {
    const made = await waiting({ given, store }, { items: 4 })
    const items = await claimItems({ given }, made)
    const [cancelled] = await Promise.allSettled([
      hf.cancel(made.parent.id),
      ...items.map((item) => finish(store, [item])),
    ])
    const job = await hf.get(made.parent.id)
    expect(cancelled.status).toBe('fulfilled')
    expect(job?.state).toBe('cancelled')
    expect(
      await query('select from holdfast.job_status where finished_at is null and barrier_id = $1', [made.barrier.id]),
    ).toEqual([])
  }
  expect((await hf.audit()).violations).toEqual([])
})

test('a cancel that races with the seal leaves nothing alive', { timeout: 60_000 }, async ({
  given,
  store,
  hf,
  query,
}) => {
  for (let round = 0; round < 40; round++) {
    const made = await producing({ given, store }, { items: 3 })
    const answers = await Promise.allSettled([hf.cancel(made.parent.id), seal(store, made)])
    expect(answers[0]).toMatchObject({ status: 'fulfilled' })
    expect(await hf.get(made.parent.id)).toMatchObject({ state: 'cancelled' })
    expect(
      await query('select from holdfast.job_status where finished_at is null and barrier_id = $1', [made.barrier.id]),
    ).toEqual([])
  }
  expect((await hf.audit()).violations).toEqual([])
})

test('a cancel while items are added leaves none of them alive for longer than a sweep', async ({
  open,
  query,
  store,
}) => {
  const half = gate()
  const go = gate()
  const slow = defineJob('slow', {
    queue: 'slow',
    stages: [
      {
        name: 'all',
        fanOut: async function* () {
          for (let n = 0; n < 20; n++) {
            if (n === 10) {
              half.open()
              await go.promise
            }
            yield n
          }
        },
        each: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      },
    ],
  })
  const hf = await open({ jobs: [slow], batchSize: 5, concurrency: 3 })
  await hf.work()
  const { id } = await hf.submit(slow, null)
  await half.promise
  await hf.cancel(id)
  go.open()
  await sweepOf(store)
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'nothing is alive',
  )
  expect(await hf.get(id)).toMatchObject({ state: 'cancelled' })
  expect(await query(`select distinct state from holdfast.job_status where finished_at is not null`)).toEqual([
    { state: 'cancelled' },
  ])
})
