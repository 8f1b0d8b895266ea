import { connect, migrate } from 'holdfast'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { finalStates, legalPairs, liveStates } from '#holdfast/job/machine'
import { knownMigrations } from '#holdfast/store/migrate'
import { expect, newDatabase, test } from './fixtures.ts'

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

test('a migration that fails leaves nothing behind and says why, and the next one can go on', async () => {
  const { url, query } = await emptyDatabase()
  await query('create schema holdfast')
  await query('create table holdfast.finished_job (in_the_way int)')
  await expect(migrate(url)).rejects.toThrow(/finished_job/)
  expect(await query(`select to_regclass('holdfast.live_job') as live`)).toEqual([{ live: null }])
  await query('drop table holdfast.finished_job')
  expect(await migrate(url)).toHaveLength((await knownMigrations()).length)
})

test('connecting with migrate brings the schema first', async () => {
  const { url } = await emptyDatabase()
  const hf = await connect({ url, migrate: true, ...quiet })
  expect(await hf.list()).toEqual([])
  await hf.close()
})

test('the guards in the database are those that the machine declares: every pair of live states, tried by hand', async ({
  given,
  query,
}) => {
  const session = await given.session()
  const leases = (state: string) =>
    state === 'running' ? `${session}, deadline_at = now()` : 'null, deadline_at = null'
  const legal = new Set([
    ...legalPairs().map(([from, to]) => `${from}>${to}`),
    ...liveStates.map((state) => `${state}>${state}`),
  ])
  for (const from of liveStates) {
    for (const to of [...liveStates, ...finalStates, 'gone']) {
      const { id } = await given.queued()
      await query('alter table holdfast.live_job disable trigger legal_moves')
      await query(`update holdfast.live_job set state = '${from}', session_id = ${leases(from)} where id = $1`, [id])
      await query('alter table holdfast.live_job enable trigger legal_moves')
      const moved = await query(
        `update holdfast.live_job set state = '${to}', session_id = ${leases(to)} where id = $1`,
        [id],
      ).then(
        () => true,
        (error) => (error.code === '23514' ? false : Promise.reject(error)),
      )
      expect(moved, `${from} → ${to}`).toBe(legal.has(`${from}>${to}`) && liveStates.some((live) => live === to))
    }
  }
})

test('the database refuses by itself what the law forbids', async ({ given, query }) => {
  const running = await given.running()
  const { id: queued } = await given.queued()
  const { id: finished } = await given.finished()
  const illegal = [
    [`update holdfast.live_job set attempt = attempt - 1 where id = $1`, running.id],
    [`update holdfast.live_job set state = 'waiting' where id = $1`, queued],
    [`update holdfast.live_job set session_id = null where id = $1`, running.id],
    [`update holdfast.live_job set deadline_at = null where id = $1`, running.id],
    [
      `update holdfast.live_job set state = 'succeeded', session_id = null, deadline_at = null where id = $1`,
      running.id,
    ],
    [`update holdfast.finished_job set state = 'queued' where id = $1`, finished],
    [`update holdfast.live_job set priority = 9 where id = $1`, queued],
  ]
  for (const [text, id] of illegal)
    await expect(query(text as string, [id]), text).rejects.toMatchObject({ code: '23514' })
})
