import { readdir } from 'node:fs/promises'
import { defineJob, PermanentError } from 'holdfast'
import pg from 'pg'
import { findUnstopped } from '#holdfast/fan-out/heal.sql'
import { resultsOf } from '#holdfast/fan-out/results'
import { lowestId } from '#holdfast/job/id'
import type { Runner } from '#holdfast/postgres/store'
import { duties } from '#holdfast/reaper/duties'
import { stopBarriers } from '#holdfast/settle/fan-out.sql'
import { claimItems, fail, finish, openFor, producing, seal, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('a producer or a join that misses a file or a server of its own fails like any handler', async ({ open }) => {
  let runs = 0
  const kind = (name: string, stage: { fanOut: () => Promise<string[]>; join?: () => never }) =>
    defineJob(name, { stages: [{ name: 'all', retries: 1, each: () => 1, ...stage }] })
  const reads = kind('reads', {
    fanOut: () => {
      runs += 1
      return readdir('/nowhere/at/all')
    },
  })
  const joins = kind('joins', {
    fanOut: async () => ['a'],
    join: () => {
      runs += 1
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })
    },
  })
  const hf = await open({ jobs: [reads, joins] })
  await hf.work()
  for (const job of [reads, joins]) {
    runs = 0
    const handle = await hf.submit(job, null)
    await expect(handle.result({ timeout: 4_000 })).rejects.toMatchObject({ code: 'job_failed' })
    expect(runs).toBe(2)
  }
})

test('an item of a stage that fans out no more fails with the reason, and holds up nobody', async ({
  given,
  store,
  open,
}) => {
  const made = await waiting({ given, store }, { queue: 'shared', items: 3 })
  const sample = defineJob('sample', { queue: 'shared', run: () => 'it fanned out before' })
  const other = defineJob('other', { queue: 'shared', priority: 3, run: () => 'fine' })
  const hf = await open({ jobs: [sample, other], concurrency: 1 })
  const handle = await hf.submit(other, null)
  await hf.work()
  expect(await handle.result({ timeout: 5_000 })).toMatchObject({ output: 'fine' })
  const failed = await until(async () => {
    const items = await hf.items(made.parent.id, { state: 'failed' })
    return items.length > 0 && items
  })
  expect(failed[0]?.error?.message).toMatch('Stage run has no `each` in this version')
  expect(await hf.handle(made.parent.id).result()).toMatchObject({ output: 'it fanned out before' })
})

test('a join gets every result, although a second run of the producer gave the items in another order', async ({
  open,
}) => {
  let run = 0
  const many = Array.from({ length: 1_200 }, (_, n) => `k${n}`)
  const kind = defineJob('shuffled', {
    stages: [
      {
        name: 'all',
        retries: 2,
        key: (item: string) => item,
        async *fanOut() {
          run += 1
          if (run === 1) {
            yield* many.slice(0, 600)
            throw new Error('half-way')
          }
          yield* [...many.slice(601), ...many.slice(0, 601)]
        },
        each: (_ctx, item) => item,
        join: async (_ctx, summary, results) => {
          const seen = new Set<string>()
          for await (const { key } of results) seen.add(key)
          return { total: summary.total, seen: seen.size }
        },
      },
    ],
  })
  // the first run has stored a batch by the time it breaks
  const hf = await open({ jobs: [kind], batchSize: 500 })
  await hf.work()
  const handle = await hf.submit(kind, null)
  expect(await handle.result()).toMatchObject({ output: { total: 1_200, seen: 1_200 } })
  const listed = new Set<string>()
  for (let after: { stage: number; position: number } | undefined; ; ) {
    const page = await hf.items(handle.id, { limit: 101, ...(after && { after }) })
    for (const { key } of page) listed.add(key)
    if (page.length < 101) break
    after = page.at(-1)
  }
  expect(listed.size).toBe(1_200)
})

test('the output of an item that is a job of its own is that of its last stage, or none', async ({ open }) => {
  const inner = defineJob('inner', {
    stages: [
      { name: 'first', run: ({ input }) => `first of ${input}` },
      {
        name: 'second',
        run: ({ input }) => {
          if (input === 'bad') throw new PermanentError('bad')
          return input === 'full' ? 'second' : undefined
        },
      },
    ],
  })
  const outer = defineJob('outer', {
    stages: [
      {
        name: 'all',
        tolerate: { count: 1 },
        fanOut: () => ['full', 'void', 'bad'],
        each: inner,
        join: async (_ctx, _summary, results) => {
          const outputs: unknown[] = []
          for await (const { output } of results) outputs.push(output)
          return outputs
        },
      },
    ],
  })
  const hf = await open({ jobs: [outer, inner] })
  await hf.work()
  const handle = await hf.submit(outer, null)
  expect(await handle.result()).toMatchObject({ output: ['second', null, null] })
})

test.for([
  [0.29, 100, 29],
  [0.57, 100, 57],
  [1 / 3, 3, 1],
  [0.07, 100, 7],
  [0.5, 3, 1],
  [0.999, 1, 0],
  [1, 4, 4],
] as const)('a share of %f of %i items tolerates %i', async ([share, items, most], { given, store, query }) => {
  const made = await waiting({ given, store }, { items, tolerate: { share } })
  const claimed = await claimItems({ given }, made)
  await fail(store, claimed.slice(0, most))
  expect(await query('select stopped_at from holdfast.barrier')).toEqual([{ stopped_at: null }])
  if (most === items) return
  await fail(store, claimed.slice(most, most + 1))
  expect(await query('select stopped_at is not null as stopped from holdfast.barrier')).toEqual([{ stopped: true }])
})

test('a share is the same whether items fail before the seal or after it', async ({ given, store, query }) => {
  const made = await producing({ given, store }, { items: 100, tolerate: { share: 0.29 } })
  const claimed = await claimItems({ given }, made)
  await fail(store, claimed.slice(0, 29))
  await seal(store, made)
  expect(await query('select stopped_at from holdfast.barrier')).toEqual([{ stopped_at: null }])
})

test('a stop that comes late cancels nothing of a fan-out that was redone', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3 })
  const [first] = await claimItems({ given }, made)
  await fail(store, [first as never])
  // the worker that saw it stalls here, the reaper stops the rest, the parent fails and is redone
  await sweepOf(store)
  const sessionId = await given.session()
  const [parent] = await given.claim({ sessionId, queue: made.parent.queue })
  expect(parent?.id).toBe(made.parent.id)
  await fail(store, [parent as never])
  await hf.redo(made.parent.id)
  expect(await store.run(stopBarriers, { ids: [made.barrier.id], reason: 'late' })).toEqual([])
  expect((await hf.items(made.parent.id)).map(({ state }) => state)).toEqual(['queued', 'queued', 'queued'])
  expect(await query('select 1 from holdfast.job_status where finished_at is null')).toHaveLength(4)
})

test('a sweep that found a fan-out abandoned cancels nothing of it once its parent is redone', async ({
  given,
  store,
  hf,
}) => {
  const made = await producing({ given, store }, { items: 3 })
  await fail(store, [made.parent])
  const found = await store.run(findUnstopped, { after: lowestId, limit: 10 })
  expect(found).toMatchObject([{ id: made.barrier.id, is_abandoned: true }])
  await hf.redo(made.parent.id)
  await store.run(stopBarriers, { ids: found.map(({ id }) => id), reason: 'late' })
  expect((await hf.items(made.parent.id)).map(({ state }) => state)).toEqual(['queued', 'queued', 'queued'])
})

test('a count that tolerates any number is a count', async ({ open }) => {
  const kind = defineJob('any', {
    stages: [
      {
        name: 'all',
        retries: 0,
        tolerate: { count: Number.MAX_SAFE_INTEGER },
        fanOut: () => [1, 2],
        each: () => {
          throw new PermanentError('no')
        },
      },
    ],
  })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  expect(await (await hf.submit(kind, null)).result()).toMatchObject({ state: 'partial', output: { failed: 2 } })
})

test('large items are stored in smaller batches', async ({ open, query }) => {
  const text = 'x'.repeat(1_000_000)
  const kind = defineJob('large', {
    stages: [
      { name: 'all', fanOut: () => Array.from({ length: 40 }, (_, n) => ({ n, text })), each: (_c, { n }) => n },
    ],
  })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  const handle = await hf.submit(kind, null)
  await handle.result()
  const [batches] = await query(
    `select count(distinct txid::text)::int as n from holdfast.event where type = 'job.submitted' and job_id <> $1`,
    [handle.id],
  )
  expect(batches?.n).toBeGreaterThan(2)
})

test('large results are read in smaller pages', async ({ open, store, query }) => {
  const text = 'x'.repeat(1_000_000)
  const kind = defineJob('large', { stages: [{ name: 'all', fanOut: () => Array(60).fill(1), each: () => text }] })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  await (await hf.submit(kind, null)).result()
  const [barrier] = await query<{ id: string }>('select id from holdfast.barrier')
  const pages: number[] = []
  const counting: Runner = {
    async run(statement, params) {
      const rows = await store.run(statement, params)
      pages.push(rows.length)
      return rows
    },
  }
  const positions: number[] = []
  for await (const { position } of resultsOf(counting, barrier?.id as string)) positions.push(position)
  expect(positions).toEqual(Array.from({ length: 60 }, (_, n) => n))
  expect(Math.max(...pages)).toBeLessThanOrEqual(8)
})

test('the items of an urgent job are as urgent', async ({ open, query }) => {
  const kind = defineJob('urgent', { stages: [{ name: 'all', fanOut: () => [1], each: () => 1 }] })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  await (await hf.submit(kind, null, { priority: 1 })).result()
  expect(await query('select distinct priority from holdfast.job_status where finished_at is not null')).toEqual([
    { priority: 1 },
  ])
})

test('a fan-out that has failed by its count stops its producer', async ({ open }) => {
  let given = 0
  const failed = gate()
  const kind = defineJob('endless', {
    stages: [
      {
        name: 'all',
        tolerate: { count: 1 },
        async *fanOut() {
          for (;;) {
            given += 1
            if (given > 20) await failed.promise
            if (given > 500) return
            yield given
          }
        },
        each: () => {
          throw new PermanentError('no')
        },
      },
    ],
  })
  const hf = await open({ jobs: [kind], batchSize: 10 })
  await hf.work()
  const handle = await hf.submit(kind, null)
  await until(async () => (await hf.items(handle.id, { state: 'failed' })).length >= 10)
  failed.open()
  await expect(handle.result()).rejects.toMatchObject({
    code: 'job_failed',
    details: { error: { code: 'items_failed' } },
  })
  expect(given).toBeLessThan(100)
})

test.for(['finish', 'fail', 'quarantine'] as const)(
  'ending the last item by a %s wakes idle workers',
  async (how, { given, store, url, query }) => {
    const made = await waiting({ given, store }, { items: 1, tolerate: { count: 1 } })
    const claimed = await claimItems({ given }, made)
    await query('update holdfast.session set wants_wake = true where id = $1', [made.parent.sessionId])
    const client = new pg.Client(url)
    await client.connect()
    const heard: string[] = []
    client.on('notification', ({ channel }) => heard.push(channel))
    await client.query('listen holdfast_wake')
    await client.query('listen end_of_test')
    if (how === 'finish') await finish(store, claimed)
    if (how === 'fail') await fail(store, claimed)
    if (how === 'quarantine') {
      await query('update holdfast.job set crash_budget = 1 where is_part')
      await query(`update holdfast.lease set deadline_at = now() - interval '1 s'`)
      await sweepOf(
        store,
        duties.filter(({ name }) => name === 'reviveHung'),
      )
    }
    await query(`select pg_notify('end_of_test', '')`)
    await until(() => heard.includes('end_of_test')).finally(() => client.end())
    expect(heard).toEqual(['holdfast_wake', 'end_of_test'])
  },
)

test('a fan-out that was redone expires as it did at first', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 1, expiresMs: 1 })
  await until(async () => (await query(`select 1 from holdfast.barrier where expires_at < now()`)).length)
  await sweepOf(store)
  const sessionId = await given.session()
  const [parent] = await given.claim({ sessionId, queue: made.parent.queue })
  await fail(store, [parent as never])
  await hf.redo(made.parent.id)
  const rows = await given.claim({ sessionId, queue: made.parent.queue, most: 2 })
  const again = rows.find(({ id }) => id === made.parent.id)
  const fence = { ...made.parent, ...(again as object) }
  await openFor(store, fence, { expiresMs: 60_000 })
  await seal(store, { parent: fence })
  const [row] = await query(`select expires_at > now() + interval '50 s' as is_bounded from holdfast.barrier`)
  expect(row).toEqual({ is_bounded: true })
})

test('items of a slow producer run while the others are still to come', async ({ open }) => {
  const ran = gate()
  const kind = defineJob('slow', {
    stages: [
      {
        name: 'all',
        async *fanOut() {
          yield 1
          await ran.promise
          yield 2
        },
        each: () => void ran.open(),
      },
    ],
  })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  expect(await (await hf.submit(kind, null)).result({ timeout: 5_000 })).toMatchObject({ state: 'succeeded' })
})

test('a barrier that was closed unsealed is no join', async ({ open, query }) => {
  const kind = defineJob('closed', {
    stages: [{ name: 'all', fanOut: () => [1, 2], each: () => 1 }],
  })
  const hf = await open({ jobs: [kind] })
  const handle = await hf.submit(kind, null)
  await query(
    `insert into holdfast.barrier (id, job_id, stage, tenant, joined_at) values (gen_random_uuid(), $1, 0, 'default', now())`,
    [handle.id],
  )
  await hf.work()
  expect(await handle.result()).toMatchObject({ output: { total: 2 } })
})
