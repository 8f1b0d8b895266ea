import { defineJob, type Holdfast } from 'holdfast'
import type pg from 'pg'
import { expect, gate, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const plain = defineJob('plain', { run: () => 'done' })
const barrierOf = 'select from holdfast.barrier where job_id = $1 for update'

/** A fan-out whose items go on one by one, as they are let. It counts how often each ran. */
function gatedFanOut(kind: string, items: number) {
  const waiting: (() => void)[] = []
  const runs: number[] = []
  const job = defineJob(kind, {
    stages: [
      {
        name: 'each',
        retries: 0,
        fanOut: () => Array.from({ length: items }, (_, index) => index),
        each: async (_ctx, item) => {
          runs.push(item)
          await new Promise<void>((resolve) => waiting.push(resolve))
        },
      },
    ],
  })
  const letGo = (count: number) => {
    for (const resolve of waiting.splice(0, count)) resolve()
  }
  return { job, runs, letGo }
}

/** How long a job takes from its submit to its result. */
async function roundMs(hf: Holdfast): Promise<number> {
  const startedMs = performance.now()
  await (await hf.submit(plain, null)).result({ timeout: 20_000 })
  return performance.now() - startedMs
}

/** Resolves when a statement of that name has waited for a lock for the second time. */
async function triedTwice(pool: pg.Pool, statement: string): Promise<void> {
  const starts = new Set<string>()
  await until(
    async () => {
      const { rows } = await pool.query(
        `select pid || ' ' || query_start as start from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like $1`,
        [`%${statement} */%`],
      )
      for (const { start } of rows) starts.add(start)
      return starts.size >= 2
    },
    `${statement} is tried again`,
    20_000,
  )
}

test('a barrier that a stranger holds slows no other outcome of the worker, and its items are settled when it is free, without running again', async ({
  open,
  pool,
  query,
}) => {
  const held = gatedFanOut('held', 60)
  const free = gatedFanOut('free', 5)
  const hf = await open({ jobs: [held.job, free.job, plain], concurrency: 100, batchSize: 5 })
  const stuck = await hf.submit(held.job, null)
  const other = await hf.submit(free.job, null)
  await hf.work()
  await until(() => held.runs.length === 60 && free.runs.length === 5, 'all items run')
  const isWaiting = `select from holdfast.waiting where job_id = any($1)`
  await until(async () => (await query(isWaiting, [[stuck.id, other.id]])).length === 2, 'both are sealed')
  const release = await strangerHolds(pool, barrierOf, [stuck.id])
  held.letGo(10)
  free.letGo(5)
  const firstMs = await roundMs(hf)
  expect(firstMs).toBeLessThan(5_000)
  expect(await other.result({ timeout: 10_000 })).toMatchObject({ state: 'succeeded' })
  const rounds: number[] = []
  for (let round = 0; round < 25; round++) {
    held.letGo(2)
    rounds.push(await roundMs(hf))
  }
  expect(rounds.toSorted((a, b) => a - b)[20]).toBeLessThan(300)
  expect(Math.max(...rounds)).toBeLessThan(1_500)
  expect(await hf.get(stuck.id)).toMatchObject({ state: 'waiting' })
  await release()
  expect(await stuck.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(held.runs).toHaveLength(60)
  expect(await query('select from holdfast.refusal')).toEqual([])
}, 90_000)

test('a barrier that a stranger holds keeps its fan-out from being sealed, and no other outcome', async ({
  open,
  pool,
}) => {
  const produced = gate()
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        retries: 0,
        async *fanOut() {
          yield 1
          await produced.promise
        },
        each: () => {},
      },
    ],
  })
  const hf = await open({ jobs: [fan, plain] })
  const stuck = await hf.submit(fan, null)
  await hf.work()
  await until(async () => (await pool.query('select from holdfast.barrier')).rowCount === 1, 'its barrier is open')
  const release = await strangerHolds(pool, barrierOf, [stuck.id])
  produced.open()
  expect(await roundMs(hf)).toBeLessThan(5_000)
  const rounds: number[] = []
  for (let round = 0; round < 10; round++) rounds.push(await roundMs(hf))
  expect(rounds.toSorted((a, b) => a - b)[7]).toBeLessThan(300)
  await release()
  expect(await stuck.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(await hf.get(stuck.id)).toMatchObject({ failures: 0, crashes: 0 })
}, 60_000)

test('items of a locked barrier, however many, keep the worker from no other job', async ({ open, pool, query }) => {
  const held = gatedFanOut('held', 30)
  const hf = await open({ jobs: [held.job, plain], concurrency: 50, batchSize: 5 })
  const stuck = await hf.submit(held.job, null)
  await hf.work()
  await until(() => held.runs.length === 30, 'all items run')
  await until(async () => (await query('select from holdfast.waiting')).length === 1, 'it is sealed')
  const release = await strangerHolds(pool, barrierOf, [stuck.id])
  // more outcomes than a worker keeps for a database that is behind: four batches
  held.letGo(30)
  for (let round = 0; round < 5; round++) expect(await roundMs(hf)).toBeLessThan(5_000)
  await release()
  expect(await stuck.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(held.runs).toHaveLength(30)
}, 60_000)

test('items of a locked barrier are reported together, written in batches, and do not run again when their deadline passes', async ({
  open,
  pool,
  query,
}) => {
  const held = gatedFanOut('held', 60)
  const lines: string[] = []
  const note = (facts: object) => {
    const { err } = facts as { err?: Error }
    if (err && /could not be written yet/.test(err.message)) lines.push(err.message)
  }
  const log = { debug: () => {}, info: () => {}, warn: note, error: note }
  const hf = await open({ jobs: [held.job], concurrency: 100, batchSize: 20, log })
  const stuck = await hf.submit(held.job, null)
  await hf.work()
  await until(() => held.runs.length === 60, 'all items run')
  await until(async () => (await query('select from holdfast.waiting')).length === 1, 'it is sealed')
  await query(`create table public.written (count int);
    create function public.count_written() returns trigger language plpgsql as $$
      begin insert into public.written select count(*) from rows; return null; end $$;
    create trigger count_written after insert on holdfast.outcome referencing new table as rows
      for each statement execute function public.count_written()`)
  const release = await strangerHolds(pool, barrierOf, [stuck.id])
  held.letGo(60)
  await until(() => lines.length > 0, 'it is reported that they wait')
  await query(`update holdfast.lease set deadline_at = now() + interval '15 s'`)
  const near = `select from holdfast.lease where deadline_at < now() + interval '20 s'`
  await until(async () => (await query(near)).length === 0, 'their deadlines are extended', 30_000)
  expect(lines.length).toBeLessThan(12)
  await release()
  expect(await stuck.result({ timeout: 20_000 })).toMatchObject({ state: 'succeeded' })
  expect(held.runs).toHaveLength(60)
  expect(await query('select from public.written where count > 20')).toEqual([])
  expect(await query(`select from holdfast.event where type = 'job.revived'`)).toEqual([])
}, 90_000)

test('a lease that a stranger holds while items are added costs the fan-out no retry', async ({
  open,
  pool,
  query,
}) => {
  const go = gate()
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        retries: 0,
        fanOut: async () => {
          await go.promise
          return [1, 2, 3]
        },
        each: () => {},
      },
    ],
  })
  const hf = await open({ jobs: [fan], statementTimeoutMs: 2_000 })
  const job = await hf.submit(fan, null)
  await hf.work()
  await until(async () => (await query('select from holdfast.barrier')).length === 1, 'its barrier is open')
  const release = await strangerHolds(pool, 'select from holdfast.lease for update')
  go.open()
  await triedTwice(pool, 'barrier.add')
  await release()
  expect(await job.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(await hf.get(job.id)).toMatchObject({ failures: 0 })
}, 60_000)

test('a barrier that a stranger holds when its fan-out is tried again costs no further retry', async ({
  open,
  pool,
  query,
}) => {
  const go = gate()
  let runs = 0
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        retries: 1,
        fanOut: async () => {
          runs += 1
          await go.promise
          if (runs === 1) throw new Error('the first attempt fails')
          return [1, 2, 3]
        },
        each: () => {},
      },
    ],
  })
  const hf = await open({ jobs: [fan], statementTimeoutMs: 2_000 })
  const job = await hf.submit(fan, null)
  await hf.work()
  await until(async () => (await query('select from holdfast.barrier')).length === 1, 'its barrier is open')
  const release = await strangerHolds(pool, barrierOf, [job.id])
  go.open()
  await triedTwice(pool, 'barrier.open')
  await release()
  expect(await job.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(await hf.get(job.id)).toMatchObject({ failures: 1 })
}, 60_000)

test('a barrier that a stranger holds when its join is about to run costs no retry, also if the stage runs out of time', async ({
  open,
  pool,
  query,
}) => {
  const go = gate()
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        retries: 0,
        timeoutMs: 1_500,
        fanOut: () => [1, 2, 3],
        each: () => go.promise,
        join: () => 'joined',
      },
    ],
  })
  const hf = await open({ jobs: [fan], concurrency: 5, timeoutGraceMs: 5_000 })
  const job = await hf.submit(fan, null)
  await hf.work()
  const running = 'select from holdfast.running'
  await until(async () => (await query(running)).length === 3, 'its items run')
  await until(async () => (await query('select from holdfast.waiting')).length === 1, 'it is sealed')
  await hf.pauseQueue('default')
  go.open()
  await until(
    async () => (await query('select from holdfast.ready where job_id = $1', [job.id])).length === 1,
    'it joins',
  )
  const release = await strangerHolds(pool, barrierOf, [job.id])
  await hf.resumeQueue('default')
  const released = `select from holdfast.event where job_id = $1 and type = 'job.released'`
  await until(async () => (await query(released, [job.id])).length > 0, 'the attempt is given back', 20_000)
  await release()
  expect(await job.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded', output: 'joined' })
  expect(await hf.get(job.id)).toMatchObject({ failures: 0 })
}, 60_000)
