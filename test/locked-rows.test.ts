import { defineJob } from 'holdfast'
import { duties } from '#holdfast/reaper/duties'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

/** The row to hold is that of the lease: what was claimed together, of one kind. */
const lockJobs = 'select from holdfast.lease where job_ids && $1::uuid[] for update'

test('a lease that a stranger holds keeps no outcome of another from being settled, and its own are settled when it is free', async ({
  open,
  pool,
  query,
}) => {
  const held = gate()
  const started: string[] = []
  const run = async ({ job }: { job: { id: string } }) => {
    started.push(job.id)
    await held.promise
    return 'done'
  }
  const alone = defineJob('alone', { retries: 0, run })
  const one = defineJob('one', { retries: 0, run })
  const late = defineJob('late', { run: () => 'late' })
  const hf = await open({ jobs: [alone, one, late], concurrency: 20 })
  const { id: locked } = await hf.submit(alone, null)
  const handles = await hf.submitMany(
    one,
    Array.from({ length: 8 }, (_, input) => ({ input: input as unknown })),
  )
  await hf.work()
  await until(() => started.length === 9, 'all run')
  const others = handles.map(({ id }) => id)
  const release = await strangerHolds(pool, lockJobs, [[locked]])
  held.open()
  const later = await hf.submitMany(
    late,
    Array.from({ length: 5 }, (_, input) => ({ input: input as unknown })),
  )
  for (const { id } of later)
    expect(await hf.handle(id, late).result({ timeout: 15_000 })).toMatchObject({ output: 'late' })
  for (const id of others)
    expect(await hf.handle(id, one).result({ timeout: 15_000 })).toMatchObject({ output: 'done' })
  expect(await hf.get(locked)).toMatchObject({ state: 'running', attempt: 1 })
  await release()
  expect(await hf.handle(locked, alone).result({ timeout: 15_000 })).toMatchObject({ output: 'done' })
  expect(started).toHaveLength(9)
  expect(await query('select from holdfast.refusal')).toEqual([])
}, 60_000)

test('an orphan that a stranger holds keeps no other from being revived, and is revived when it is free', async ({
  given,
  store,
  pool,
  hf,
}) => {
  const dead = await Promise.all(Array.from({ length: 40 }, () => given.attemptOfDeadSession()))
  const [locked, ...others] = dead.map(({ id }) => id)
  const release = await strangerHolds(pool, lockJobs, [[locked]])
  const swept = await sweepOf(store, duties)
  expect(swept.revived.map(({ id }) => id).sort()).toEqual(others.toSorted())
  expect(swept.sweep.sweepMs).toBeLessThan(5_000)
  await release()
  expect((await sweepOf(store, duties)).revived.map(({ id }) => id)).toEqual([locked])
  expect(await hf.get(locked as string)).toMatchObject({ state: 'queued', crashes: 1 })
}, 60_000)

test('a barrier that a stranger holds keeps only its own items', async ({ open, pool }) => {
  const held = gate()
  let started = 0
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'each',
        fanOut: () => [1, 2, 3],
        each: async () => {
          started += 1
          await held.promise
        },
      },
    ],
  })
  const plain = defineJob('plain', {
    async run() {
      started += 1
      await held.promise
    },
  })
  const hf = await open({ jobs: [fan, plain], concurrency: 20 })
  const parent = await hf.submit(fan, null)
  const others = await hf.submitMany(
    plain,
    Array.from({ length: 8 }, (_, input) => ({ input: input as unknown })),
  )
  await hf.work()
  await until(() => started === 11, 'all run')
  const release = await strangerHolds(pool, 'select from holdfast.barrier for update')
  held.open()
  for (const { id } of others) await hf.handle(id, plain).result({ timeout: 20_000 })
  await release()
  expect(await parent.result({ timeout: 20_000 })).toMatchObject({ state: 'succeeded' })
}, 60_000)

test('an outcome that takes the database too long fails with the reason, and its neighbors are settled', async ({
  open,
  query,
}) => {
  await query(`create function slow() returns trigger language plpgsql as $$
    begin
      if (select kind from holdfast.job where id = new.job_id) = 'slow' and new.state = 'succeeded' then perform pg_sleep(60); end if;
      return new;
    end $$`)
  await query('create trigger slow before insert on holdfast.outcome for each row execute function slow()')
  const held = gate()
  let started = 0
  const run = async () => {
    started += 1
    await held.promise
  }
  const slow = defineJob('slow', { run })
  const plain = defineJob('plain', { run })
  const hf = await open({ jobs: [slow, plain], concurrency: 30, statementTimeoutMs: 1_000 })
  await hf.submit(slow, null)
  const good = await hf.submitMany(
    plain,
    Array.from({ length: 19 }, (_, input) => ({ input: input as unknown })),
  )
  await hf.work()
  await until(() => started === 20, 'all run')
  held.open()
  const finished = `select from holdfast.job_status where finished_at is not null and kind = 'plain' and state = 'succeeded'`
  await until(async () => (await query(finished)).length === good.length, 'the neighbors are settled', 20_000)
  const ended = await until(
    async () =>
      (
        await query(
          `select state, attempt, failures, error->>'message' as why from holdfast.job_status where finished_at is not null and kind = 'slow'`,
        )
      )[0],
    'the slow one has failed',
    40_000,
  )
  expect(ended).toMatchObject({ state: 'failed', attempt: 1, failures: 1, why: expect.stringContaining('refused') })
  expect(started).toBe(20)
}, 90_000)
