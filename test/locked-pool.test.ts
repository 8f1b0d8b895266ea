import { defineJob, type Holdfast } from 'holdfast'
import type pg from 'pg'
import { expect, gate, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const plain = defineJob('plain', { run: () => 'done' })
const fails = defineJob('fails', {
  stages: [
    {
      name: 'each',
      tolerate: { share: 1 },
      retries: 0,
      fanOut: () => Array.from({ length: 20 }, (_, index) => index),
      each: () => {
        throw new Error('every item fails')
      },
    },
  ],
})

const isLocked = { code: 'database_timeout', message: expect.stringContaining('locked by another transaction') }

/** Submits and runs jobs one after another, and returns the longest time that one took. */
async function longestMs(hf: Holdfast, rounds: number): Promise<number> {
  let longest = 0
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now()
    await (await hf.submit(plain, null)).result({ timeout: 30_000 })
    longest = Math.max(longest, performance.now() - startedMs)
  }
  return longest
}

/** Runs writes while a stranger holds what they need: other jobs go on, and each write gets an error that says why. */
async function contend(hf: Holdfast, writes: () => Promise<unknown>[]): Promise<void> {
  const errors = writes().map((one) =>
    one.then(
      () => 'written',
      (error: unknown) => error,
    ),
  )
  expect(await longestMs(hf, 1)).toBeLessThan(5_000)
  expect(await longestMs(hf, 10)).toBeLessThan(1_500)
  for (const error of await Promise.all(errors)) expect(error).toMatchObject(isLocked)
}

async function failedItems(hf: Holdfast, pool: pg.Pool): Promise<{ parent: string; items: string[] }> {
  const { id } = await hf.submit(fails, null)
  await hf.handle(id, fails).result({ timeout: 20_000 })
  const { rows } = await pool.query('select job_id as id from holdfast.outcome where barrier_id is not null')
  return { parent: id, items: rows.map((row) => row.id) }
}

test('jobs that wait for a locked barrier to be redone take no connection from others, and fail with the reason', async ({
  open,
  pool,
}) => {
  const hf = await open({ jobs: [fails, plain] })
  await hf.work()
  const { parent, items } = await failedItems(hf, pool)
  const release = await strangerHolds(pool, 'select from holdfast.barrier where job_id = $1 for update', [parent])
  await contend(hf, () => items.map((id) => hf.redo(id)))
  const [item] = items as [string]
  const before = (await hf.get(item))?.attempt as number
  const late = hf.redo(item)
  await release()
  await late
  await until(async () => ((await hf.get(item))?.attempt as number) > before, 'it runs again')
}, 90_000)

test('bulk submits whose key is locked take no connection from others, and fail with the reason', async ({
  open,
  pool,
}) => {
  const hf = await open({ jobs: [plain] })
  await hf.work()
  const stranger = await pool.connect()
  await stranger.query('begin')
  await hf.submit(plain, null, { key: 'held', tx: stranger })
  await contend(hf, () =>
    Array.from({ length: 12 }, () => hf.submitMany(plain, [{ input: null, key: 'held' }, { input: null }])),
  )
  const late = hf.submitMany(plain, [{ input: null, key: 'held' }])
  await stranger.query('rollback')
  stranger.release()
  expect(await late).toHaveLength(1)
}, 90_000)

test('endpoints, keys and queues that a stranger holds take no connection from jobs, and their changes fail with the reason', async ({
  open,
  pool,
}) => {
  const hf = await open({ jobs: [plain], webhookAllow: ['127.0.0.1'] })
  await hf.work()
  const endpoint = await hf.webhooks.create({ url: 'http://127.0.0.1:1/', types: ['job.failed'] })
  const key = await hf.keys.create({ name: 'one', scopes: ['read'], tenant: null })
  await hf.pauseQueue('other')
  const release = await strangerHolds(
    pool,
    `with one as materialized (select from holdfast.endpoint for update), two as materialized (select from holdfast.api_key for update),
      three as materialized (select from holdfast.queue for update)
    select (select count(*) from one), (select count(*) from two), (select count(*) from three)`,
  )
  // noting that a key was used is no reason to wait
  await hf.keys.touch([key.id])
  await contend(hf, () =>
    Array.from({ length: 5 }, () => [
      hf.webhooks.update(endpoint.id, { note: 'changed' }),
      hf.webhooks.disable(endpoint.id),
      hf.keys.revoke(key.id),
      hf.pauseQueue('other'),
    ]).flat(),
  )
  const late = hf.keys.revoke(key.id)
  await release()
  expect(await late).toMatchObject({ revokedAt: expect.any(Date) })
}, 90_000)

test('a change of another kind does not wait behind hundreds that need a locked row', async ({ open, pool }) => {
  const hf = await open({ poolSize: 2, webhookAllow: ['127.0.0.1'] })
  const { id } = await hf.webhooks.create({ url: 'http://127.0.0.1:1/', types: ['job.failed'] })
  await hf.pauseQueue('other')
  const release = await strangerHolds(pool, 'select from holdfast.queue for update')
  const pauses = Array.from({ length: 200 }, () =>
    hf.pauseQueue('other').then(
      () => 'paused',
      () => 'failed',
    ),
  )
  const updated = hf.webhooks.update(id, { note: 'changed' }).then(() => 'updated')
  expect(await Promise.race([updated, ...pauses])).toBe('updated')
  await release()
  await Promise.all(pauses)
}, 120_000)

test('cancels of items of a locked barrier keep no other cancel and no other job, and are carried out when it is free', async ({
  open,
  pool,
  query,
}) => {
  const never = gate()
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        tolerate: { share: 1 },
        fanOut: () => Array.from({ length: 20 }, (_, index) => index),
        each: () => never.promise,
      },
    ],
  })
  const hf = await open({ jobs: [fan, plain], concurrency: 30 })
  const parent = await hf.submit(fan, null)
  await hf.work()
  const running = () => query<{ id: string }>('select job_id as id from holdfast.running where barrier_ids is not null')
  await until(async () => (await running()).length === 20, 'its items run')
  await until(async () => (await query('select from holdfast.waiting')).length === 1, 'it is sealed')
  const items = (await running()).map(({ id }) => id)
  const release = await strangerHolds(pool, 'select from holdfast.barrier for update')
  const cancels = items.map((id) => hf.cancel(id))
  const free = await hf.submitMany(
    plain,
    Array.from({ length: 10 }, () => ({ input: null, delayMs: 60_000 })),
  )
  const startedMs = performance.now()
  for (const { id } of free) await hf.cancel(id)
  // the first of them may share its statement with those that have to wait
  expect(performance.now() - startedMs).toBeLessThan(6_000)
  expect(await longestMs(hf, 10)).toBeLessThan(1_500)
  await release()
  await Promise.all(cancels)
  for (const id of items) expect(await hf.get(id)).toMatchObject({ state: 'cancelled' })
  never.open()
  await until(
    async () => (await query('select from holdfast.outcome where job_id = $1', [parent.id])).length === 1,
    'it joins',
  )
}, 90_000)
