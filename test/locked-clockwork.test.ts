import { defineJob } from 'holdfast'
import { makeLeader } from '#holdfast/leader/leader'
import { currentLeader } from '#holdfast/leader/leader.sql'
import { makeDuties } from '#holdfast/reaper/duties'
import { beat, comeBack } from '#holdfast/worker/session.sql'
import { endDrain, takeDrain } from '#holdfast/worker/suspect.sql'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const plain = defineJob('plain', { run: () => 'done' })

test('a key that an open transaction holds keeps no other submit, however often somebody submits it', async ({
  open,
  pool,
}) => {
  const hf = await open({ jobs: [plain] })
  const stranger = await pool.connect()
  await stranger.query('begin')
  const first = await hf.submit(plain, null, { key: 'held', tx: stranger })
  const startedMs = performance.now()
  const same: Promise<{ id: string }>[] = []
  for (let round = 0; round < 12; round++) {
    same.push(hf.submit(plain, null, { key: 'held' }))
    await Promise.all([hf.submit(plain, null), hf.submit(plain, null, { key: `free ${round}` })])
  }
  // the first of them waits for two seconds, as nobody knows of the key yet
  expect(performance.now() - startedMs).toBeLessThan(8_000)
  await stranger.query('commit')
  stranger.release()
  for (const { id } of await Promise.all(same)) expect(id).toBe(first.id)
}, 60_000)

test('a key whose transaction is undone is taken by the first who waits for it', async ({ open, pool, query }) => {
  const hf = await open({ jobs: [plain] })
  const stranger = await pool.connect()
  await stranger.query('begin')
  const undone = await hf.submit(plain, null, { key: 'held', tx: stranger })
  const same = Array.from({ length: 5 }, () => hf.submit(plain, null, { key: 'held' }))
  await until(
    async () =>
      (await query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`))
        .length > 0,
    'they wait',
  )
  await stranger.query('rollback')
  stranger.release()
  const ids = new Set((await Promise.all(same)).map(({ id }) => id))
  expect(ids.size).toBe(1)
  expect(ids.has(undone.id)).toBe(false)
  expect(await query('select from holdfast.job')).toHaveLength(1)
}, 60_000)

test('a progress row that a stranger holds hardly delays the outcomes of others', async ({ open, pool, query }) => {
  const end = gate()
  const chatty = defineJob('chatty', {
    async run({ input, progress }) {
      if ((input as unknown) !== 'held') return progress(1, 2)
      const timer = setInterval(() => progress(1, 2), 20)
      await end.promise
      clearInterval(timer)
    },
  })
  const hf = await open({ jobs: [chatty], concurrency: 5 })
  await hf.work()
  const held = await hf.submit(chatty, 'held')
  await until(async () => (await query('select from holdfast.job_progress')).length === 1, 'it reports')
  const release = await strangerHolds(pool, 'select from holdfast.job_progress for update')
  const startedMs = performance.now()
  for (let round = 0; round < 6; round++) await (await hf.submit(chatty, 'free')).result({ timeout: 15_000 })
  expect(performance.now() - startedMs).toBeLessThan(15_000)
  await release()
  end.open()
  expect(await held.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
}, 60_000)

test('sessions that a stranger holds keep nobody from being revived', async ({ given, store, pool, query }) => {
  const back = await given.attemptOfDeadSession()
  await sweepOf(store, makeDuties())
  await store.run(comeBack, { id: back.sessionId })
  const release = await strangerHolds(pool, 'select from holdfast.session for update')
  expect(await store.run(comeBack, { id: back.sessionId })).toEqual([])
  const dead = await given.attemptOfDeadSession()
  const swept = await sweepOf(store, makeDuties())
  expect(swept.revived.map(({ id }) => id)).toEqual([dead.id])
  expect(swept.sweep.sweepMs).toBeLessThan(5_000)
  await release()
  await sweepOf(store, makeDuties())
  expect(await query('select from holdfast.session where came_back_at is not null and cleared_at is null')).toEqual([])
}, 60_000)

test('parked outcomes of jobs that a stranger holds do not hold up a sweep, and are written when they are free', async ({
  given,
  store,
  pool,
  query,
}) => {
  const sessionId = await given.session()
  await Promise.all(Array.from({ length: 60 }, () => given.queued({ kind: 'parked' })))
  await query(`update holdfast.ready set run_at = '9999-01-01 00:00:00+00'`)
  await query(
    `insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, next_at)
    select job_id, attempt, $1, '{"move":"finish","output":"1","stageName":"one"}', 'planted', now() from holdfast.ready`,
    [sessionId],
  )
  const release = await strangerHolds(pool, `select from holdfast.ready where kind = 'parked' for update`)
  const dead = await given.attemptOfDeadSession()
  const swept = await sweepOf(store, makeDuties())
  expect(swept.revived.map(({ id }) => id)).toEqual([dead.id])
  expect(swept.sweep.sweepMs).toBeLessThan(6_000)
  await release()
  await query('update holdfast.parked_outcome set next_at = now()')
  await until(async () => {
    await sweepOf(store, makeDuties())
    return (await query(`select from holdfast.job_status where kind = 'parked' and state = 'succeeded'`)).length === 60
  }, 'all are written')
}, 60_000)

test("a leader's row that a stranger holds stops no recovery: candidates stand in until it can be taken", async ({
  store,
  pool,
}) => {
  const candidates = Array.from({ length: 2 }, () =>
    makeLeader({ store, leaseMs: 600, renewMs: 50, onElected() {}, onDeposed() {}, onError() {} }),
  )
  await Promise.all(candidates.map((one) => one.start()))
  const leading = () => candidates.filter((one) => one.term() !== null)
  await until(() => leading().length === 1, 'one leads')
  const release = await strangerHolds(pool, 'select from holdfast.leader for update')
  await until(async () => (await store.run(currentLeader, {}))[0]?.is_current === false, 'the lease is over')
  await until(() => leading().length === 2, 'both stand in')
  await release()
  await until(async () => (await store.run(currentLeader, {}))[0]?.is_current, 'the lead is taken')
  await until(() => leading().length === 1, 'one leads again')
  await Promise.all(candidates.map((one) => one.stop()))
}, 60_000)

test('a worker whose session a stranger holds goes on under another one', async ({ open, pool, query }) => {
  const settings = { heartbeatMs: 100, lostAfterMs: 1_500, leaseMs: 3_000, abortMarginMs: 300 }
  const hf = await open({ jobs: [plain], ...settings })
  await hf.work()
  const [before] = await query<{ id: number }>('select id from holdfast.session')
  const release = await strangerHolds(pool, 'select from holdfast.session for update')
  await until(async () => (await query('select from holdfast.session')).length > 1, 'it has another session')
  const { id } = await hf.submit(plain, null)
  expect(await hf.handle(id, plain).result({ timeout: 20_000 })).toMatchObject({ output: 'done' })
  // statements that nobody waits for any more must not pile up in the server
  const waiting = await query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )
  expect(waiting.length).toBeLessThanOrEqual(2)
  await release()
  await until(
    async () =>
      (await query('select from holdfast.session where id = $1 and ended_at is not null', [before?.id])).length > 0,
    'the old session is ended',
  )
}, 90_000)

test('kinds that a stranger holds keep no worker from starting', async ({ open, pool, query }) => {
  const first = await open({ jobs: [plain] })
  await first.work()
  const release = await strangerHolds(pool, 'select from holdfast.kind for update')
  const second = await open({ jobs: [plain] })
  await second.work()
  expect(await query('select from holdfast.session where ended_at is null')).toHaveLength(2)
  await release()
}, 60_000)

test('a drain that a stranger holds is left alone', async ({ given, store, pool }) => {
  const drain = { sessionId: await given.session(), queue: 'default', kind: 'plain' }
  expect(await store.run(takeDrain, drain)).toHaveLength(1)
  const release = await strangerHolds(pool, 'select from holdfast.drain for update')
  expect(await store.run(takeDrain, drain)).toEqual([])
  expect(await store.run(endDrain, drain)).toEqual([])
  await release()
  expect(await store.run(takeDrain, drain)).toHaveLength(1)
  expect(await store.run(takeDrain, { ...drain, sessionId: await given.session() })).toEqual([])
  expect(await store.run(endDrain, drain)).toHaveLength(1)
})

test('sessions that could not renew their leases because their table was locked first have the time to do so', async ({
  given,
  store,
  pool,
  query,
}) => {
  const { sessionId: alive } = await given.running()
  const { sessionId: dead } = await given.running()
  const runOut = `update holdfast.session set lease_until = now() - interval '1 s', lost_after = interval '1 s'`
  await query(runOut)
  const duties = makeDuties()
  const release = await strangerHolds(pool, 'lock table holdfast.session in access exclusive mode')
  const sweep = sweepOf(store, duties)
  const isLongHeld = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
    and query_start < clock_timestamp() - interval '1.1 s'`
  await until(async () => (await query(isLongHeld)).length > 0, 'the sweep waits for the table')
  await release()
  expect((await sweep).ended).toEqual([])
  expect((await sweepOf(store, duties)).ended).toEqual([])
  await until(async () => {
    expect(await store.run(beat, { id: alive, isLocked: false, leaseMs: 15_000 })).toHaveLength(1)
    return (await sweepOf(store, duties)).ended.some(({ id }) => id === dead)
  }, 'the session that does not come back is ended')
}, 60_000)

/** Fan-outs whose job is gone, each with one queued item. */
const abandoned = (count: number) => `
  with barrier as (
    insert into holdfast.barrier (id, job_id, stage, tenant, sealed_at, armed_at, total)
    select gen_random_uuid(), gen_random_uuid(), 0, 'default', now(), now(), 1 from generate_series(1, ${count})
    returning id
  ),
  item as (
    insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input, barrier_id, position)
    select gen_random_uuid(), now(), 3, 2, 'plain', 'nobody', 'default', 'null', id, 0 from barrier
    returning *
  )
  insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget, barrier_id)
  select id, now(), kind, queue, tenant, priority, crash_budget, barrier_id from item`

test('items that a stranger holds, of however many fan-outs that are to be stopped, keep no sweep from ending', async ({
  store,
  pool,
  query,
}) => {
  await query(abandoned(110))
  const release = await strangerHolds(pool, 'select from holdfast.ready for update')
  expect((await sweepOf(store, makeDuties())).healed).toEqual([])
  await release()
  expect((await sweepOf(store, makeDuties())).healed).toHaveLength(110)
}, 60_000)
