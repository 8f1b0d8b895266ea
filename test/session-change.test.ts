import { defineJob } from 'holdfast'
import pg from 'pg'
import { memberKinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { isHeldBack } from './hold.ts'

const turnstile = 4_711
/** Holds a claim between its look at the session and its commit, until the test lets go of the lock. */
const holdClaims = `
  create function public.hold_claim() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock_shared(${turnstile});
    return new;
  end $$;
  create trigger hold_claim before insert on holdfast.lease for each row execute function public.hold_claim()`

test('jobs that a claim brings after its session was replaced are given back, not started', async ({
  open,
  url,
  pool,
  query,
}) => {
  const started: { id: string; attempt: number }[] = []
  const plain = defineJob('plain', { run: ({ job, attempt }) => void started.push({ id: job.id, attempt }) })
  await query(holdClaims)
  const gatekeeper = new pg.Client(url)
  await gatekeeper.connect()
  await gatekeeper.query('select pg_advisory_lock($1)', [turnstile])
  const hf = await open({ jobs: [plain], heartbeatMs: 100 })
  const handles = await hf.submitMany(
    plain,
    Array.from({ length: 5 }, () => ({ input: null })),
  )
  const working = await hf.work()
  const before = working.sessionId()
  await until(() => isHeldBack(pool, 'job.claim'), 'the claim is under way')
  await query(`update holdfast.session set ended_at = now(), ended_by = 'test' where id = $1`, [before])
  await until(() => working.sessionId() !== before, 'the worker has another session')
  await gatekeeper.end()
  await Promise.all(handles.map((handle) => handle.result({ timeout: 15_000 })))
  expect(started.map(({ attempt }) => attempt)).toEqual([2, 2, 2, 2, 2])
  const late = await query('select distinct session_id::int from holdfast.event where attempt = 1')
  expect(late).toEqual([{ session_id: before }])
})

test('a write that comes after its session was replaced is recorded under the session that claimed the attempt', async ({
  open,
  query,
}) => {
  const begun = gate()
  const finish = gate()
  const late = defineJob('late', {
    run: async ({ attempt, log, progress }) => {
      if (attempt > 1) return
      begun.open()
      await finish.promise
      progress(1)
      log('from the session before')
    },
  })
  const hf = await open({ jobs: [late], heartbeatMs: 100 })
  const working = await hf.work()
  const before = working.sessionId()
  const handle = await hf.submit(late, null)
  await begun.promise
  await query(`update holdfast.session set ended_at = now(), ended_by = 'test' where id = $1`, [before])
  await until(() => working.sessionId() !== before, 'the worker has another session')
  await handle.result({ timeout: 15_000 })
  finish.open()
  const writes = ['finish', 'heartbeat', 'log', 'progress']
  await until(async () => (await query('select from holdfast.refusal')).length >= writes.length, 'they are refused')
  const refusals = await query('select write, session_id::int, attempt from holdfast.refusal order by write')
  expect(refusals).toEqual(writes.map((write) => ({ write, session_id: before, attempt: 1 })))
})

test('a worker whose session number a restored database has given to another process goes on under one of its own', async ({
  url,
  open,
  query,
}) => {
  const worker = await startMember({ url, settings: swift })
  const { id } = await (await open()).submit(memberKinds.hold, null)
  await worker.heard('the job runs', (line) => line.started !== undefined)
  await query(`update holdfast.session set pid = 1, host = 'elsewhere' where id = $1`, [worker.session])
  const sessions = () =>
    query<{ id: number; ended_by: string | null }>('select id::int, ended_by from holdfast.session')
  // nobody renews it any more: its jobs are revived, and the worker runs them under its new session
  await until(
    async () => (await sessions()).some((one) => one.id === worker.session && one.ended_by === 'lease ran out'),
    'the session of nobody is ended',
  )
  await until(() => worker.started().some(({ attempt }) => attempt === 2), 'the job runs again')
  expect(await sessions()).toHaveLength(2)
  worker.order({ open: 'all' })
  const hf = await open()
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
})

const shortLease = { heartbeatMs: 100, lostAfterMs: 1_000, leaseMs: 1_500, abortMarginMs: 300 }
const done = defineJob('done', { run: () => 'done' })

/** Makes the server refuse every change of one session's row, as a damaged row or a trigger of another program does. */
const refuseChanges = (id: number) => `
  create function public.refuse_change() returns trigger language plpgsql as $$
  begin raise exception 'planted: no change of this session'; end $$;
  create trigger refuse_change before update on holdfast.session
    for each row when (old.id = ${id}) execute function public.refuse_change()`

test('a worker whose session can no longer be changed goes on under a new one', async ({ open, query }) => {
  const hf = await open({ ...shortLease, jobs: [done] })
  const working = await hf.work()
  const before = working.sessionId()
  await query(refuseChanges(before))
  await until(() => working.sessionId() !== before, 'the worker has another session')
  const handle = await hf.submit(done, null)
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 'done' })
})

test('a worker whose lost session can no longer be changed goes on under a new one', async ({ open, query }) => {
  const hf = await open({ ...shortLease, jobs: [done] })
  const working = await hf.work()
  const before = working.sessionId()
  await query(`
    update holdfast.session set ended_at = now(), ended_by = 'lease ran out' where id = ${before};
    ${refuseChanges(before)}`)
  await until(() => working.sessionId() !== before, 'the worker has another session')
  const handle = await hf.submit(done, null)
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 'done' })
})
