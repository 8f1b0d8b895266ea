import { acquireLead, renewLead } from '#holdfast/leader/leader.sql'
import { makeDuties } from '#holdfast/reaper/duties'
import { findHung } from '#holdfast/reaper/revive.sql'
import { endDeadSessions } from '#holdfast/reaper/session.sql'
import { beat } from '#holdfast/worker/session.sql'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'

/** What all rows look like once the clock of the database has been set back by two hours: their times lie ahead. */
const setBack = `
  with session as (
    update holdfast.session
    set started_at = started_at + interval '2 h', heartbeat_at = now() + interval '2 h', lease_until = now() + interval '2 h 15 s',
      lost_after = interval '500 ms'
  )
  update holdfast.leader
  set acquired_at = now() + interval '2 h', renewed_at = now() + interval '2 h', lease_until = now() + interval '2 h 2 s',
    steady_since = now() + interval '1 h'`

const candidate = { holder: 'next', leaseMs: 60_000, vacantMs: 60_000 }

test('after the clock was set back, the lead of a dead leader is free, and that of a living one is renewed', async ({
  store,
  query,
}) => {
  await store.run(acquireLead, { ...candidate, holder: 'first' })
  await query(setBack)
  expect(await store.run(renewLead, { holder: 'first', term: 1, leaseMs: 60_000, sweepMs: null })).toEqual([
    { term: 1 },
  ])
  expect(await store.run(acquireLead, candidate)).toEqual([])
  await query(setBack)
  expect(await store.run(acquireLead, candidate)).toMatchObject([{ term: 2, is_taken: true }])
})

test('after the clock was set back, dead workers are found once the living had the time to renew their leases', async ({
  given,
  store,
  query,
}) => {
  const dead = await given.running()
  const alive = await given.running()
  await store.run(acquireLead, candidate)
  await query(setBack)
  const duties = makeDuties()
  const first = await sweepOf(store, duties)
  expect(first.ended).toEqual([])
  await until(async () => {
    await store.run(beat, { id: alive.sessionId, isLocked: false, leaseMs: 15_000 })
    const swept = await sweepOf(store, duties)
    return swept.ended.some(({ id }) => id === dead.sessionId)
  }, 'the dead session is ended')
  await sweepOf(store, duties)
  const [state] = await query('select state, crashes from holdfast.job_status where id = $1', [dead.id])
  expect(state).toMatchObject({ state: 'queued', crashes: 1 })
  expect(
    await query('select from holdfast.session where id = $1 and ended_at is null', [alive.sessionId]),
  ).toHaveLength(1)
}, 30_000)

test('right after the clock was set forward, no lease counts as run out', async ({ given, store }) => {
  const { sessionId } = await given.attemptOfDeadSession()
  expect(await store.run(endDeadSessions, { limit: 10, steadyMs: 100, watchedMs: 100 })).toEqual([])
  const steady = { steadyMs: Number.POSITIVE_INFINITY, watchedMs: 0 }
  expect(await store.run(endDeadSessions, { limit: 10, ...steady })).toMatchObject([{ id: sessionId }])
})

test('time in which a process saw that the leader row was locked is no time without a leader', async ({
  given,
  store,
  query,
}) => {
  const { id } = await given.running()
  await query(`update holdfast.lease set deadline_at = now() - interval '1 h'`)
  await query(`insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until, steady_since)
    select 1, 'gone', at, at, at, '-infinity' from (select now() - interval '2 h' as at) as ago`)
  const hour = 3_600_000
  const found = async (watchedMs: number) =>
    (await store.run(findHung, { limit: 10, watchedMs })).map((row) => row.id as string)
  expect(await found(0)).toEqual([])
  expect(await found(hour / 2)).toEqual([])
  expect(await found(1.5 * hour)).toEqual([id])
  expect(await store.run(acquireLead, { ...candidate, watchedMs: 2 * hour })).toMatchObject([{ is_taken: true }])
  expect(await query('select vacant_ms, steady_since::text from holdfast.leader')).toEqual([
    { vacant_ms: 0, steady_since: '-infinity' },
  ])
})

test('attempts get the time back that nobody led, whether the database was away or its clock was set forward', async ({
  open,
  given,
  query,
}) => {
  const { id, sessionId } = await given.running()
  await query(`update holdfast.session set lease_until = now() + interval '9 h' where id = $1`, [sessionId])
  await query(`update holdfast.lease set deadline_at = now() - interval '1 h'`)
  await query(`insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until, steady_since)
    select 1, 'gone', at, at, at, '-infinity' from (select now() - interval '2 h' as at) as ago`)
  const hf = await open()
  await hf.reap()
  await until(
    async () => (await query('select from holdfast.leader where swept_at is not null and term > 1')).length > 0,
    'it leads and has swept',
  )
  const [job] = await query(
    'select state, crashes, deadline_at > now() as is_early from holdfast.job_status where id = $1',
    [id],
  )
  expect(job).toEqual({ state: 'running', crashes: 0, is_early: true })
})

test('attempts get that time back even if somebody held their lease when the next leader was elected', async ({
  open,
  given,
  query,
  pool,
}) => {
  const { id, sessionId } = await given.running()
  await query(`update holdfast.session set lease_until = now() + interval '9 h' where id = $1`, [sessionId])
  await query(`update holdfast.lease set deadline_at = now() - interval '1 h'`)
  await query(`insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until, steady_since)
    select 1, 'gone', at, at, at, '-infinity' from (select now() - interval '2 h' as at) as ago`)
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.lease for update')
  const hf = await open()
  await hf.reap()
  const hasSwept = (since: string) =>
    until(
      async () =>
        (await query('select from holdfast.leader where swept_at > $1::timestamptz and term > 1', [since])).length > 0,
      'it leads and has swept',
    )
  await hasSwept('-infinity')
  await stranger.query('commit')
  stranger.release()
  const [{ now } = { now: '' }] = await query<{ now: string }>('select now()::text')
  await hasSwept(now)
  await hasSwept((await query<{ at: string }>('select swept_at::text as at from holdfast.leader'))[0]?.at ?? '')
  const [job] = await query('select state, crashes from holdfast.job_status where id = $1', [id])
  expect(job).toEqual({ state: 'running', crashes: 0 })
})
