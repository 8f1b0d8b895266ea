import type { ConnectOptions } from 'holdfast'
import { readConfig } from '#holdfast/config/config'
import { openStore, type Runner, runnerIn } from '#holdfast/postgres/store'
import { duties } from '#holdfast/reaper/duties'
import type { Duty } from '#holdfast/reaper/duty'
import { makeReaper, type ReaperObserver } from '#holdfast/reaper/reaper'
import { finishJobs } from '#holdfast/settle/settle.sql'
import { swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'

import { expect, gate, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

/** Makes every write about this job fail in this database. */
const poison = (id: string, errcode = 'P0001') => `
  create or replace function holdfast.refuse_poison() returns trigger language plpgsql as $$
  begin raise exception 'poison' using errcode = '${errcode}'; end $$;
  create trigger poison before update or delete on holdfast.lease for each row when ('${id}' = any(old.job_ids))
  execute function holdfast.refuse_poison()`

interface Told {
  level: string
  message: string
  facts: Record<string, unknown>
}

/** A log that the test reads. */
function listening(): { log: NonNullable<ConnectOptions['log']>; told: Told[] } {
  const told: Told[] = []
  const at = (level: string) => (facts: object, message: string) =>
    void told.push({ level, message, facts: { ...facts } })
  return { log: { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error') }, told }
}

test('claim, death, reaping, second claim: attempt 2, and the late settle of the first worker is refused', async ({
  given,
  store,
  hf,
}) => {
  const first = await given.attemptOfDeadSession()
  const { revived, ended } = await sweepOf(store)
  expect(ended).toMatchObject([{ id: first.sessionId, rung: 'lease ran out' }])
  expect(revived).toMatchObject([{ id: first.id, attempt: 1, orphan: 'running-dead-session' }])
  const sessionId = await given.session()
  expect(await given.claim({ sessionId, queue: first.queue })).toMatchObject([{ id: first.id, attempt: 2 }])
  const late = { fences: [first], outputs: ['"late"'], stageNames: ['one'] }
  expect(await store.run(finishJobs, late)).toMatchObject([{ count: 0, places: null }])
  expect(await hf.get(first.id)).toMatchObject({ state: 'running', attempt: 2, sessionId, outputs: {} })
})

test('fresh rows are never touched', async ({ given, store, query }) => {
  await given.running()
  await given.queued()
  await given.queued({ delayMs: 3_600_000 })
  await given.atSecondStage()
  await given.finished('failed')
  const everything = () =>
    query(`
      select (select json_agg(job order by id) from holdfast.job_status as job where job.finished_at is null) as live,
        (select json_agg(job order by id) from holdfast.job_status as job where job.finished_at is not null) as finished,
        (select json_agg(session order by id) from holdfast.session) as sessions,
        (select count(*) from holdfast.event) as events`)
  const before = await everything()
  const { revived, quarantined, ended, failed, problems } = await sweepOf(store)
  expect({ revived, quarantined, ended, failed, problems }).toEqual({
    revived: [],
    quarantined: [],
    ended: [],
    failed: [],
    problems: [],
  })
  expect(await everything()).toEqual(before)
})

test.for(['P0001', '08006', '57P01', '58030'])(
  'one bad row does not block the others: %s',
  async (errcode, { given, store, query, hf }) => {
    const orphans = await Promise.all([1, 2, 3, 4].map(() => given.attemptOfDeadSession()))
    const [bad, ...good] = orphans
    await query(poison(bad?.id as string, errcode))
    const { revived, failed, sweep } = await sweepOf(store)
    expect(revived.map(({ id }) => id).sort()).toEqual(good.map(({ id }) => id).sort())
    expect(failed).toMatchObject([{ id: bad?.id, error: { message: expect.stringContaining('poison') } }])
    expect(sweep).toMatchObject({ recovered: 3, failed: 1, isSystemic: false })
    expect(await hf.get(bad?.id as string)).toMatchObject({ state: 'running', crashes: 0 })
  },
)

test('one bad row does not block the quarantine of the others', async ({ given, store, query, hf }) => {
  const [bad, good] = await Promise.all([1, 2].map(() => given.attemptOfDeadSession({ crashBudget: 1 })))
  await query(poison(bad?.id as string))
  const { quarantined, failed } = await sweepOf(store)
  expect(quarantined.map(({ id }) => id)).toEqual([good?.id])
  expect(failed).toMatchObject([{ id: bad?.id }])
  expect(await hf.get(good?.id as string)).toMatchObject({ state: 'failed', error: { code: 'quarantined' } })
})

test('one bad duty does not block the others', async ({ given, store }) => {
  const orphan = await given.attemptOfDeadSession()
  const bad: Duty = {
    name: 'bad',
    everyMs: 0,
    run: () => Promise.reject(new Error('a bad duty')),
  }
  const { revived, problems, sweep } = await sweepOf(store, [bad, ...duties, bad])
  expect(revived).toMatchObject([{ id: orphan.id }])
  expect(problems).toEqual([
    { duty: 'bad', message: 'Error: a bad duty' },
    { duty: 'bad', message: 'Error: a bad duty' },
  ])
  expect(sweep).toMatchObject({ recovered: 1, failed: 2, isSystemic: false })
})

test('a broken connection is the trouble of a duty, and no row is blamed for it', async ({
  given,
  store,
  query,
  pool,
}) => {
  await query(`
    create function holdfast.wait_for_test() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(4711); return new; end $$;
    create trigger wait_for_test before insert on holdfast.ready for each row
    when (new.crashes > 0) execute function holdfast.wait_for_test()`)
  const all = await Promise.all([1, 2, 3].map(() => given.attemptOfDeadSession()))
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(4711)')
  const sweeping = sweepOf(store)
  const [row] = await until(async () => {
    const rows = await query<{ pid: number }>(
      `select pid from pg_stat_activity where query like '/* job.revive */%' and wait_event_type = 'Lock'`,
    )
    return rows.length > 0 && rows
  }, 'the revival is under way')
  await query('select pg_terminate_backend($1)', [row?.pid])
  const { failed, problems, sweep } = await sweeping
  await holder.query('select pg_advisory_unlock(4711)')
  holder.release()
  expect(failed).toEqual([])
  expect(problems).toMatchObject([
    { duty: 'reviveAbandoned', message: expect.stringContaining('closed the connection') },
  ])
  expect(sweep.isSystemic).toBe(true)
  expect((await sweepOf(store)).revived).toHaveLength(all.length)
})

test('however many leaders sweep at once, each orphan is moved once', async ({ given, store, query }) => {
  const sessionId = await given.session()
  await Promise.all(Array.from({ length: 40 }, () => given.running({ sessionId })))
  await query(`update holdfast.session set ended_at = now(), ended_by = 'lock gone'`)
  const sweeps = await Promise.all(Array.from({ length: 5 }, () => sweepOf(store)))
  expect(sweeps.flatMap(({ revived }) => revived)).toHaveLength(40)
  expect(sweeps.flatMap(({ failed }) => failed)).toEqual([])
  expect(
    await query(`select distinct crashes, state, attempt from holdfast.job_status where finished_at is null`),
  ).toEqual([{ crashes: 1, state: 'queued', attempt: 1 }])
  const [told] = await query(
    `select count(*)::int as revivals, count(distinct job_id)::int as jobs from holdfast.event where type = 'job.revived'`,
  )
  expect(told).toEqual({ revivals: 40, jobs: 40 })
})

test('a sweep that fails rolls back and keeps its connection, and the loop goes on', async ({
  given,
  open,
  query,
  hf: reader,
}) => {
  const orphan = await given.attemptOfDeadSession()
  await query(`
    create function holdfast.fail() returns trigger language plpgsql as $$
    begin
      if current_query() like '/* session.end_dead */%' then raise exception 'planted in backend %', pg_backend_pid(); end if;
      return null;
    end $$;
    create trigger planted after update on holdfast.session for each statement execute function holdfast.fail()`)
  const hf = await open(swift)
  const reaping = await hf.reap()
  const failures = async () =>
    Number(/^holdfast_sweep_failures_total\{duty="endSessions"\} (\d+)$/m.exec(await hf.metrics())?.[1] ?? 0)
  const backends = async () =>
    (await query<{ pid: number }>('select pid from pg_stat_activity where datname = current_database()')).map(
      ({ pid }) => pid,
    )
  await until(async () => (await failures()) >= 3, 'sweeps fail')
  const early = await backends()
  await until(async () => (await failures()) >= 12, 'the loop goes on although its sweeps fail')
  expect(await query('select from holdfast.session where ended_at is not null')).toEqual([])
  expect(reaping.term()).toBe(1)
  expect(await backends()).toEqual(expect.arrayContaining(early))
  await query('drop trigger planted on holdfast.session')
  await until(async () => (await reader.get(orphan.id))?.state === 'queued', 'the next sweep succeeds')
})

test('a connection that the caller brings is never swapped for another', async ({ given, pool, hf }) => {
  const orphan = await given.attemptOfDeadSession()
  const client = await pool.connect()
  const backend = async () => (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  const pid = await backend()
  await client.query('begin')
  expect((await sweepOf(runnerIn(client))).revived).toMatchObject([{ id: orphan.id }])
  const inside = await client.query('select state from holdfast.job_status where id = $1', [orphan.id])
  expect(inside.rows).toEqual([{ state: 'queued' }])
  expect((await hf.get(orphan.id))?.state).toBe('running')
  await client.query('rollback')
  expect((await hf.get(orphan.id))?.state).toBe('running')
  expect(await backend()).toBe(pid)
  client.release()
})

test('a sweep that fails on a connection of the caller leaves the roll-back to the caller', async ({
  given,
  pool,
  query,
  hf,
}) => {
  const [bad, good] = await Promise.all([given.attemptOfDeadSession(), given.attemptOfDeadSession()])
  await query(poison(bad.id))
  const client = await pool.connect()
  await client.query('begin')
  const { revived, failed, sweep } = await sweepOf(runnerIn(client))
  // inside one transaction nothing can succeed after a failure; had it gone elsewhere, it would have
  expect(revived).toEqual([])
  expect(failed.map(({ id }) => id).sort()).toEqual([bad.id, good.id].sort())
  expect(sweep.isSystemic).toBe(true)
  await client.query('rollback')
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  client.release()
  expect((await hf.get(good.id))?.state).toBe('running')
})

test('a sweep is systemic only if something failed and nothing was recovered', async ({ given, open, query }) => {
  const bad = await given.attemptOfDeadSession()
  await query(poison(bad.id))
  const { log, told } = listening()
  const hf = await open({ ...swift, log })
  await hf.reap()
  await until(() => told.some(({ message }) => message.startsWith('systemic')), 'the sweep is reported as systemic')
  expect(told.find(({ message }) => message.startsWith('systemic'))).toMatchObject({
    level: 'error',
    facts: { failed: 1 },
  })
  const good = await given.attemptOfDeadSession()
  const sweep = await until(() => told.find(({ message }) => message === 'sweep'), 'a sweep recovers something')
  expect(sweep).toMatchObject({ level: 'warn', facts: { recovered: 1, failed: 1 } })
  expect(told.find(({ message }) => message === 'revived')).toMatchObject({ level: 'warn', facts: { job: good.id } })
  expect(told.find(({ message }) => message === 'could not recover an orphan')).toMatchObject({
    facts: { job: bad.id },
  })
})

test('a sweep that skips everything is quiet', async ({ given, open, pool, query, hf: reader }) => {
  const orphan = await given.attemptOfDeadSession()
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from holdfast.session for update')
  const { log, told } = listening()
  const hf = await open({ ...swift, log })
  await hf.reap()
  const sweeps = async () => Number(/^holdfast_sweep_seconds_count (\d+)$/m.exec(await hf.metrics())?.[1] ?? 0)
  await until(async () => (await sweeps()) >= 3, 'some sweeps')
  expect(told.map(({ message }) => message)).toEqual(['became leader'])
  expect(await query('select from holdfast.session where ended_at is not null')).toEqual([])
  await holder.query('rollback')
  holder.release()
  await until(async () => (await reader.get(orphan.id))?.state === 'queued', 'what was skipped is swept later')
})

const silent: ReaperObserver = { elected() {}, deposed() {}, done() {}, swept() {}, onError() {} }

test('a reaper is alive as long as its loop turns, even if the database was never reached', async () => {
  const store = openStore({ url: 'postgres://127.0.0.1:1/none', poolSize: 2, isPooled: false, statementTimeoutMs: 500 })
  const reaper = makeReaper({ store, config: readConfig(swift, {}), observer: silent })
  await reaper.start()
  for (let beat = 1; beat <= 5; beat++) {
    const last = reaper.beatAt().getTime()
    await until(() => reaper.beatAt().getTime() > last, 'the loop turns')
  }
  expect(reaper.term()).toBe(null)
  await reaper.stop()
  await store.close()
})

test('a leader whose database is cut off stops leading, and its loop goes on turning', async ({ url }) => {
  const wire = await makeWire(url)
  const store = openStore({ url: wire.url, poolSize: 4, isPooled: false, statementTimeoutMs: 500 })
  const reaper = makeReaper({ store, config: readConfig(swift, {}), observer: silent })
  await reaper.start()
  await until(() => reaper.term(), 'it leads')
  wire.stall()
  await until(() => reaper.term() === null, 'it leads no more')
  for (let beat = 1; beat <= 5; beat++) {
    const last = reaper.beatAt().getTime()
    await until(() => reaper.beatAt().getTime() > last, 'the loop turns')
  }
  wire.reconnect()
  await until(() => reaper.term(), 'it leads again')
  await reaper.stop()
  await store.close()
})

test('a leader whose sweeps hang lets another one lead', async ({ store }) => {
  const config = readConfig({ ...swift, statementTimeoutMs: 500 }, {})
  let isHung = false
  const hang = gate<never[]>()
  const hanging: Runner = {
    run: (statement, params, answerMs) =>
      isHung && statement.name === 'session.end_dead' ? hang.promise : store.run(statement, params, answerMs),
  }
  const deposed = gate<string>()
  const first = makeReaper({ store: hanging, config, observer: { ...silent, deposed: (_, why) => deposed.open(why) } })
  await first.start()
  await until(() => first.term(), 'it leads')
  const second = makeReaper({ store, config, observer: silent })
  await second.start()
  isHung = true
  expect(await deposed.promise).toBe('its sweeps are stuck')
  expect((await until(() => second.term(), 'another one leads')) as number).toBeGreaterThan(1)
  hang.open([])
  await Promise.all([first.stop(), second.stop()])
})
