import { defineJob } from 'holdfast'
import pg from 'pg'
import { inject } from 'vitest'
import { makeSettler } from '#holdfast/settle/settle'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'

/** Lets nobody into a database any more, or in again, and ends all connections to it. A server with a full disk does the same. */
async function letIn(url: string, isOpen: boolean): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const client = new pg.Client(inject('server'))
  await client.connect()
  await client.query(`alter database ${name} allow_connections ${isOpen}`)
  if (!isOpen) await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  await client.end()
}

/** Makes the first so many inserts into a table fail as they do on a full disk. */
const fullFor = (table: string, inserts: number) => `
  create sequence full_disk;
  create function full_disk() returns trigger language plpgsql as $$
  begin
    if nextval('full_disk') <= ${inserts} then raise exception 'could not extend file: No space left on device' using errcode = '53100'; end if;
    return new;
  end $$;
  create trigger full_disk before insert on holdfast.${table} for each row execute function full_disk()`

test('an outcome is not blamed for a server that lets nobody in, and is settled when it does', async ({
  url,
  open,
}) => {
  const done = gate()
  const started = gate()
  const once = defineJob('once', {
    retries: 0,
    async run() {
      started.open()
      await done.promise
      return 'done'
    },
  })
  const hf = await open({ jobs: [once] })
  await hf.work()
  const handle = await hf.submit(once, null)
  await started.promise
  await letIn(url, false)
  try {
    done.open()
    // the settle asks for a connection before each of these does
    for (const _ of [1, 2, 3]) await expect(hf.get(handle.id)).rejects.toThrow('not currently accepting connections')
  } finally {
    await letIn(url, true)
  }
  expect(await handle.result({ timeout: 30_000 })).toMatchObject({ state: 'succeeded', output: 'done' })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 1, failures: 0, crashes: 0 })
}, 60_000)

test('a disk that is full while a stage fans out costs the job no attempt that counts', async ({ open, query }) => {
  await query(fullFor('barrier', 3))
  const fan = defineJob('fan', {
    stages: [{ name: 'each', retries: 0, fanOut: () => [1, 2, 3], each: () => 'one' }],
  })
  const hf = await open({ jobs: [fan] })
  const handle = await hf.submit(fan, null)
  await hf.work()
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
  expect(await hf.get(handle.id)).toMatchObject({ failures: 0, crashes: 0 })
})

/** Makes every write of an outcome fail with this SQLSTATE. */
const refuseOutcomes = (errcode: string) => `
  create function refused() returns trigger language plpgsql as $$
  begin raise exception 'planted' using errcode = '${errcode}'; end $$;
  create trigger refused before insert on holdfast.outcome for each row execute function refused()`

test('outcomes are not blamed for a server whose files fail for all of them, and are written once it can', async ({
  given,
  store,
  query,
}) => {
  await query(refuseOutcomes('58030'))
  const fences = await Promise.all([1, 2, 3].map(() => given.running()))
  const told = gate<string>()
  const settler = makeSettler({
    store,
    batchSize: 500,
    givenUp: new AbortController().signal,
    onRefused: () => {},
    onError: (error) => told.open(String(error)),
  })
  const outcome = { move: 'finish', stageName: 'one', output: '"done"' } as const
  const settled = Promise.all(fences.map((fence) => settler.settle({ fence, outcome })))
  expect(await Promise.race([told.promise, settled])).toContain('could not be written yet (and 2 more); retrying')
  await query('drop trigger refused on holdfast.outcome')
  expect(await settled).toEqual(['settled', 'settled', 'settled'])
})

test('work that was done before the disk was full is not taken for hung, however long that lasts', async ({
  open,
  query,
  store,
}) => {
  let deadlineAt: Date | undefined
  let runs = 0
  const short = defineJob('short', {
    timeoutMs: 2_000,
    async run() {
      runs += 1
      deadlineAt ??= (await query<{ deadline_at: Date }>('select deadline_at from holdfast.running'))[0]?.deadline_at
      return 'done'
    },
  })
  await query(refuseOutcomes('53100'))
  const hf = await open({ jobs: [short], holdMs: 100, timeoutGraceMs: 100, heartbeatMs: 100 })
  await hf.work()
  const handle = await hf.submit(short, null)
  await until(() => deadlineAt, 'it has run')
  const hasPassed = 'select where clock_timestamp() > $1'
  await until(async () => (await query(hasPassed, [deadlineAt])).length > 0, 'the deadline has passed')
  expect(await sweepOf(store)).toMatchObject({ revived: [], failed: [] })
  await query('drop trigger refused on holdfast.outcome')
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded', output: 'done' })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 1, failures: 0, crashes: 0 })
  expect(runs).toBe(1)
})
