import pg from 'pg'
import { call } from './cli/command.ts'
import { expect, test } from './fixtures.ts'

/** The server's view of its connections, in which a transaction named `forgotten` began an hour earlier: nobody waits for a minute here. */
const backdated = `create view backdated.pg_stat_activity as
  select pid, datname, usename, application_name, backend_type, backend_start, backend_xid, backend_xmin, state, query_start, query,
    case when application_name = 'forgotten' then xact_start - interval '1 h' else xact_start end as xact_start
  from pg_catalog.pg_stat_activity`

test('a transaction that keeps the server from cleaning up is named, with its pid and age', async ({
  given,
  open,
  query,
  url,
  onTestFinished,
}) => {
  const { id, queue } = await given.queued()
  // a worker that could claim it, and does not
  const sessionId = await given.session()
  await query(`update holdfast.session set kinds = array['sample'], queues = array[$2] where id = $1`, [
    sessionId,
    queue,
  ])
  await query(`update holdfast.ready set run_at = now() - interval '1 h'`)
  await query('create schema backdated')
  await query(backdated)
  await query(`alter database ${new URL(url).pathname.slice(1)} set search_path = backdated, pg_catalog, public`)
  const hf = await open()
  expect((await hf.recovery()).oldestSnapshot).toBeNull()
  const forgotten = new pg.Client({ connectionString: url, application_name: 'forgotten' })
  await forgotten.connect()
  onTestFinished(() => forgotten.end().catch(() => {}))
  forgotten.on('error', () => {})
  await forgotten.query('begin isolation level repeatable read')
  const { rows } = await forgotten.query('select pg_backend_pid() as pid, now() as since')
  const [{ pid, since }] = rows
  expect((await hf.recovery()).oldestSnapshot).toEqual({
    what: 'transaction',
    pid,
    name: null,
    application: 'forgotten',
    since: new Date(since.getTime() - 3_600_000),
  })
  const words = `a transaction (forgotten, pid ${pid}), open for`
  expect((await hf.why(id)).verdict.sentence).toContain(`vacuum is held back by ${words}`)
  const { stdout } = await call(['top', '--once'], { env: { HOLDFAST_URL: url } })
  expect(stdout).toContain(`cleaning  held back by ${words}`)
  expect(Number(/^holdfast_oldest_snapshot_seconds (\S+)$/m.exec(await hf.metrics())?.[1])).toBeGreaterThan(0)
  expect((await hf.why(id, { tenant: 'default' })).facts.oldestSnapshot).toBeUndefined()
  await forgotten.end()
})
