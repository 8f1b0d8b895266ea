import { type AttemptAborted, defineJob } from 'holdfast'
import { sessionLockClass } from '#holdfast/postgres/locks'
import { beat, wantWake } from '#holdfast/worker/session.sql'
import { memberKinds as kinds, startMember } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, quick, test, until } from './fixtures.ts'
import { holdTable, isHeldBack } from './hold.ts'
import { queuedCrowd } from './places.ts'
import { makeWire } from './wire.ts'

/** A lease so short that missing a few heartbeats loses it. */
const shortLease = { ...quick, heartbeatMs: 100, lostAfterMs: 1_000, leaseMs: 1_500, abortMarginMs: 300 }

const lockOf = `select from pg_locks where locktype = 'advisory' and granted and classid = ${sessionLockClass} and objid = $1
  and database = (select oid from pg_database where datname = current_database())`

test('a worker starts, and is known by its lock, however far ahead the numbers of sessions were set', async ({
  open,
  query,
  given,
  store,
}) => {
  await query('alter table holdfast.session alter column id restart with 3000000000')
  const hf = await open({ jobs: [defineJob('noop', { run: () => 'done' })] })
  await hf.work()
  expect(await hf.sessions()).toMatchObject([{ id: 3_000_000_000, isLocked: true }])
  const { id } = await given.attemptOfDeadSession()
  // the worker's own reaper may be faster than this sweep
  await sweepOf(store)
  const isRevived = async () =>
    (await query(`select from holdfast.event where job_id = $1 and type = 'job.revived'`, [id])).length === 1
  await until(isRevived, 'the job of the dead session is revived')
})

test('a worker keeps its lease while a handler blocks the event loop for longer than the lease', async ({
  url,
  open,
  query,
}) => {
  const hf = await open(shortLease)
  await hf.reap()
  const worker = await startMember({ url, settings: shortLease })
  const bystander = await hf.submit(kinds.hold, null)
  await worker.runs(bystander.id)
  const blocked = await hf.submit(kinds.blocking, 3_500)
  await worker.runs(blocked.id)
  await until(async () => {
    const [session] = await query(
      'select lease_until > now() as is_held, ended_at from holdfast.session where id = $1',
      [worker.session],
    )
    expect(session).toEqual({ is_held: true, ended_at: null })
    return (await hf.get(blocked.id))?.state === 'succeeded'
  }, 'the blocking job ends')
  worker.order({ open: 'all' })
  await bystander.result({ timeout: 10_000 })
  for (const { id } of [blocked, bystander]) expect(await hf.get(id)).toMatchObject({ state: 'succeeded', attempt: 1 })
  expect(worker.lines.filter(({ aborted }) => aborted)).toEqual([])
})

test('a worker that is cut off aborts its handlers before the database would give their jobs away', async ({
  url,
  open,
  query,
}) => {
  const wire = await makeWire(url)
  const started = gate()
  const aborted = gate<{ reason: unknown; isLeaseHeld: unknown }>()
  const watchful = defineJob('watchful', {
    run: ({ signal }) => {
      started.open()
      return new Promise((_, reject) =>
        signal.addEventListener('abort', async () => {
          const [session] = await query(
            'select lease_until > clock_timestamp() as is_held from holdfast.session order by id',
          )
          aborted.open({ reason: (signal.reason as AttemptAborted).reason, isLeaseHeld: session?.is_held })
          reject(signal.reason)
        }),
      )
    },
  })
  const hf = await open({
    ...shortLease,
    leaseMs: 3_000,
    lostAfterMs: 2_000,
    abortMarginMs: 1_000,
    url: wire.url,
    jobs: [watchful],
  })
  await hf.work()
  const { id } = await hf.submit(watchful, null)
  await started.promise
  wire.stall()
  expect(await aborted.promise).toEqual({ reason: 'lease_lost', isLeaseHeld: true })
  wire.reconnect()
  // nobody took the job meanwhile, so giving it back costs no retry
  await until(async () => {
    const [job] = await query<{ attempt: number; failures: number }>(
      'select attempt, failures from holdfast.job_status where id = $1',
      [id],
    )
    expect(job?.failures).toBe(0)
    return (job?.attempt ?? 0) > 1
  }, 'the job is claimed again')
})

test('a session holds an advisory lock while its process lives, and loses it with a kill -9', async ({
  url,
  open,
  query,
}) => {
  const hf = await open()
  const worker = await startMember({ url, settings: quick })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  expect(await query(lockOf, [worker.session])).toHaveLength(1)
  await worker.kill('SIGKILL')
  await until(async () => (await query(lockOf, [worker.session])).length === 0, 'the lock goes')
  expect(await hf.get(id)).toMatchObject({ state: 'running', attempt: 1, sessionId: worker.session })
})

test('a session whose lock connection is cut takes the lock again on a new one', async ({ open, query }) => {
  const hf = await open({ jobs: [kinds.blocking], heartbeatMs: 100 })
  const working = await hf.work()
  const [holder] = await query<{ pid: number }>(lockOf.replace('select', 'select pid'), [working.sessionId()])
  await query('select pg_terminate_backend($1)', [holder?.pid])
  const again = await until(async () => {
    const [now] = await query<{ pid: number }>(lockOf.replace('select', 'select pid'), [working.sessionId()])
    return now && now.pid !== holder?.pid ? now : null
  }, 'the lock is held again')
  expect(again).toBeDefined()
})

test('a process that was frozen while its job was given away finds its late outcome refused', async ({
  url,
  open,
  query,
}) => {
  const hf = await open(shortLease)
  await hf.reap()
  const frozen = await startMember({ url, settings: shortLease })
  const { id } = await hf.submit(kinds.hold, null)
  await frozen.runs(id)
  await frozen.kill('SIGSTOP')
  await until(async () => (await hf.get(id))?.state === 'queued', 'the job is given away')
  const successor = await startMember({ url, settings: shortLease })
  await successor.runs(id, 2)
  frozen.order({ open: 'all' })
  await frozen.kill('SIGCONT')
  await until(
    async () => (await query(`select from holdfast.refusal where job_id = $1 and attempt = 1`, [id])).length > 0,
    'the late write is refused',
  )
  expect(await hf.get(id)).toMatchObject({ state: 'running', attempt: 2 })
  successor.order({ open: 'all' })
  expect(await hf.handle(id, kinds.hold).result({ timeout: 10_000 })).toMatchObject({ output: { by: successor.pid } })
  expect((await hf.timeline(id)).map(({ type }) => type).filter((type) => type !== 'job.cleared')).toEqual([
    'job.submitted',
    'job.revived',
    'job.finished',
  ])
})

test('a session that was ended cannot heartbeat itself back to life', async ({ given, store, query }) => {
  const stale = await given.attemptThatWasLost()
  expect(await store.run(beat, { id: stale.sessionId, isLocked: true, leaseMs: 60_000 })).toEqual([])
  expect(await store.run(wantWake, { id: stale.sessionId, isWanted: true })).toEqual([])
  expect(await query('select ended_by, wants_wake from holdfast.session')).toEqual([
    { ended_by: 'test', wants_wake: false },
  ])
})

test('a session that ends says so itself', async ({ open, query }) => {
  const hf = await open({ jobs: [kinds.blocking] })
  const working = await hf.work()
  await Promise.all([working.stop(), working.stop()])
  expect(await query('select ended_by, wants_wake from holdfast.session')).toEqual([
    { ended_by: 'itself', wants_wake: false },
  ])
  expect(await query(lockOf, [working.sessionId()])).toEqual([])
})

test('a worker lets go of its session only after its last outcome is written', async ({ open, pool, query }) => {
  const chatty = defineJob('chatty', { run: ({ log }) => log('almost there') })
  const hf = await open({ jobs: [chatty] })
  const working = await hf.work()
  const releaseOutcomes = await holdTable(pool, 'outcome')
  const releaseLog = await holdTable(pool, 'event_log')
  // by hand, for a submit would be held back too
  await query(queuedCrowd({ count: 1, kind: `'chatty'` }))
  await until(() => isHeldBack(pool, 'event.log'), 'the log line waits')
  const stopped = working.stop()
  await releaseLog()
  await until(() => isHeldBack(pool, 'job.finish'), 'the outcome waits')
  // more looks than a session needs to end: one that does not wait for its outcome is gone by then
  for (let looks = 0; looks < 100; looks++)
    expect(await query('select ended_at from holdfast.session')).toEqual([{ ended_at: null }])
  await releaseOutcomes()
  await stopped
  expect(await query('select state from holdfast.job_status where finished_at is not null')).toEqual([
    { state: 'succeeded' },
  ])
})
