import { connect, defineJob, type Holdfast, migrate } from 'holdfast'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { knownMigrations } from '#holdfast/schema/migrate'
import { call } from './cli/command.ts'
import { expect, newDatabase, test, until } from './fixtures.ts'
import { isHeldBack, strangerHolds } from './hold.ts'

async function emptyDatabase(): Promise<{ url: string; query: (text: string) => Promise<Record<string, unknown>[]> }> {
  const { url, drop } = await newDatabase('empty')
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    await drop()
  })
  return { url, query: async (text) => (await pool.query(text)).rows }
}

const quiet = { logLevel: 'silent' }

test('eight processes that migrate one empty database at once: each migration is applied once', async () => {
  const { url, query } = await emptyDatabase()
  const known = (await knownMigrations()).map(({ name }) => name)
  const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(url)))
  expect(applied.flat()).toEqual(known)
  expect((await query('select name from holdfast.migration order by number')).map(({ name }) => name)).toEqual(known)
})

test('migrating again changes nothing', async ({ url }) => {
  expect(await migrate(url)).toEqual([])
})

/** Leaves one function as another version of Holdfast defined it. */
function defineAsIn(version: string): string {
  return `create or replace function holdfast.snapshot_of(wanted uuid, in_lease bigint, in_slot int) returns json language plpgsql stable as $$
    begin return json_build_object('trouble', 'another version'); end $$;
    update holdfast.definition set checksum = 'another', version = '${version}' where name = 'define.snapshot_of'`
}

test('a migration of a table that a backup reads waits for its end, and no worker waits for the migration', async ({
  url,
  open,
  pool,
  query,
}) => {
  const greet = defineJob('greet', { run: () => 'hello' })
  const hf = await open({ jobs: [greet] })
  await hf.work()
  await query(`update holdfast.definition set checksum = 'another', version = '0.0.1' where name = 'guard.lease'`)
  const release = await strangerHolds(pool, 'select from holdfast.lease')
  await expect(migrate(url, { waitMs: 100 })).rejects.toMatchObject({
    code: 'database_timeout',
    message: expect.stringContaining('A table that the migration changes is locked'),
  })
  const migrating = migrate(url)
  await until(() => isHeldBack(pool, 'alter table holdfast.lease'), 'it waits for the table')
  const job = await hf.submit(greet, null)
  expect(await job.result({ timeout: 5_000 })).toMatchObject({ output: 'hello' })
  await release()
  expect(await migrating).toEqual(['guard.lease'])
})

const verdicts = async (hf: Holdfast, id: string) => (await hf.why(id)).snapshots.map(({ verdict }) => verdict?.code)

test('what a snapshot for `why` holds reaches a migrated database with a new version, without a new migration', async ({
  url,
  query,
  given,
  hf,
}) => {
  await query(defineAsIn('0.0.1'))
  // the new version works before anybody has migrated, as the old one did
  expect(await verdicts(hf, (await given.finished('failed')).id)).toEqual([undefined])
  expect((await call(['migrate', '--check'], { env: { HOLDFAST_URL: url } })).stdout).toContain('define.snapshot_of')
  expect(await migrate(url)).toEqual(['define.snapshot_of'])
  expect(await verdicts(hf, (await given.finished('failed')).id)).toEqual([expect.any(String)])
  const since =
    'select name from holdfast.definition where applied_at > (select max(applied_at) from holdfast.migration)'
  expect(await query(since)).toEqual([{ name: 'define.snapshot_of' }])
  expect(await migrate(url)).toEqual([])
})

test('an older version leaves the functions of a newer one as they are, and works with them', async ({
  url,
  query,
  given,
  hf,
}) => {
  await query(defineAsIn('99.0.0'))
  expect(await migrate(url)).toEqual([])
  expect(await verdicts(hf, (await given.finished('failed')).id)).toEqual([undefined])
})

test('a database that lacks a function of this version is told apart, and names it', async ({ url, query }) => {
  await query(`delete from holdfast.definition where name = 'define.snapshot_of'`)
  await query('drop function holdfast.snapshot_of')
  await expect(connect({ url, ...quiet })).rejects.toMatchObject({
    code: 'schema_older',
    message: expect.stringContaining('define.snapshot_of'),
  })
  await (await connect({ url, migrate: true, ...quiet })).close()
  expect(await query(`select to_regproc('holdfast.snapshot_of') is not null as is_there`)).toEqual([{ is_there: true }])
})

test('the files of the migrations are read once, however often a server is asked whether it is ready', () => {
  expect(knownMigrations()).toBe(knownMigrations())
})

test('a database without the schema is told apart, with what to do', async () => {
  const { url } = await emptyDatabase()
  await expect(connect({ url, ...quiet })).rejects.toMatchObject({
    code: 'schema_missing',
    message: expect.stringContaining('holdfast migrate'),
  })
})

test('a schema that lacks a migration is told apart, and names it', async ({ url, query }) => {
  await query('delete from holdfast.migration where number = (select max(number) from holdfast.migration)')
  const last = (await knownMigrations()).at(-1)?.name as string
  await expect(connect({ url, ...quiet })).rejects.toMatchObject({
    code: 'schema_older',
    message: expect.stringContaining(last),
  })
})

test('an older program that meets a newer schema says so, and neither works nor migrates', async ({ url, query }) => {
  await query(`insert into holdfast.migration (number, name, checksum) values (9999, '9999_from_the_future.sql', 'x')`)
  for (const attempt of [
    () => connect({ url, ...quiet }),
    () => connect({ url, migrate: true, ...quiet }),
    () => migrate(url),
  ])
    await expect(attempt()).rejects.toMatchObject({
      code: 'schema_newer',
      message: expect.stringContaining('9999_from_the_future'),
    })
})

test('a migration whose file was changed after it was applied is refused', async ({ url, query }) => {
  await query(`update holdfast.migration set checksum = 'another' where number = 1`)
  for (const attempt of [() => connect({ url, ...quiet }), () => migrate(url)])
    await expect(attempt()).rejects.toMatchObject({ code: 'schema_changed', message: expect.stringContaining('0001') })
})

test('a database from before the first release is left as it is, with a sentence that says what to do', async ({
  url,
  query,
}) => {
  await query(`update holdfast.migration set name = '0001_jobs.sql', checksum = 'another' where number = 1`)
  await query(`insert into holdfast.migration (number, name, checksum) values (2, '0002_sessions.sql', 'another')`)
  for (const attempt of [() => connect({ url, ...quiet }), () => migrate(url)])
    await expect(attempt()).rejects.toMatchObject({
      code: 'schema_unreleased',
      message: expect.stringContaining('drop schema holdfast cascade'),
    })
})

test('a migration that fails leaves nothing behind and says why, and the next one can go on', async () => {
  const { url, query } = await emptyDatabase()
  await query('create schema holdfast')
  await query('create table holdfast.outcome (in_the_way int)')
  await expect(migrate(url)).rejects.toThrow(/outcome/)
  expect(await query(`select to_regclass('holdfast.ready') as live`)).toEqual([{ live: null }])
  await query('drop table holdfast.outcome')
  expect(await migrate(url)).toHaveLength((await knownMigrations()).length)
})

test('connecting with migrate brings the schema first', async () => {
  const { url } = await emptyDatabase()
  const hf = await connect({ url, migrate: true, ...quiet })
  expect(await hf.list()).toEqual([])
  await hf.close()
})

test('the database refuses by itself what the law forbids', async ({ given, query }) => {
  const running = await given.running()
  const other = await given.running()
  const { id: queued } = await given.queued()
  const { id: finished } = await given.finished()
  await query(`update holdfast.ready set attempt = 2 where job_id = $1`, [queued])
  const illegal = [
    [`update holdfast.ready set attempt = attempt - 1 where job_id = $1`, queued],
    [`update holdfast.ready set job_id = gen_random_uuid() where job_id = $1`, queued],
    [`update holdfast.lease set done = '' where job_ids @> array[$1::uuid]`, running.id],
    [`update holdfast.lease set done = '11' where job_ids @> array[$1::uuid]`, running.id],
    [`update holdfast.outcome set state = 'failed' where job_id = $1`, finished],
    [`update holdfast.outcome set attempt = 9 where job_id = $1`, finished],
    [
      `insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state) values ($1, 'sample', 'default', now(), 1, 0, 0, 0, false, 'queued')`,
      queued,
    ],
    [`update holdfast.job set priority = 9 where id = $1`, queued],
  ]
  await query(`update holdfast.lease set done = '1' where job_ids @> array[$1::uuid]`, [other.id])
  await expect(
    query(`update holdfast.lease set done = '0' where job_ids @> array[$1::uuid]`, [other.id]),
  ).rejects.toMatchObject({ code: '23514' })
  for (const [text, id] of illegal)
    await expect(query(text as string, [id]), text).rejects.toMatchObject({ code: '23514' })
})
