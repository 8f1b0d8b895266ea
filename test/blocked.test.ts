import { type Member, memberKinds, startMember } from './crash/member.ts'
import { makeSabotage } from './crash/sabotage.ts'
import { expect, type Fixtures, quick, test, until } from './fixtures.ts'

const { blocking } = memberKinds
const kinds = ['blocking']
const settings = { ...quick, heartbeatMs: 100, holdMs: 500 }

const startedBy = (worker: Member) => new Set(worker.started().map(({ id }) => id))

/** A worker that a handler blocks for much longer than a test may take, with jobs that it has claimed ahead. */
async function startBlocked({ url, hf, query }: Pick<Fixtures, 'url' | 'hf' | 'query'>, holdMs: number) {
  const busy = await startMember({ url, kinds, settings: { ...settings, holdMs, concurrency: 1 } })
  // short ones make the worker claim ahead; one of them then blocks it
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const handles = await hf.submitMany(blocking, [...short, { input: 120_000 as never }, ...short])
  const blocker = handles[400]?.id as string
  await busy.runs(blocker)
  const unstarted = async () => {
    const rows = await query<{ id: string }>(
      'select id from holdfast.job_status where finished_at is null and session_id = $1',
      [busy.session],
    )
    return rows.map(({ id }) => id).filter((id) => !startedBy(busy).has(id))
  }
  return { busy, handles, blocker, unstarted }
}

/** The database can't be dropped while a blocked process holds on to it. */
async function end(...workers: Member[]): Promise<void> {
  await Promise.all(workers.map((worker) => worker.kill('SIGKILL')))
}

test('jobs that wait behind a handler that blocks its process are given back, and another worker runs them', async ({
  url,
  hf,
  query,
}) => {
  const { busy, handles, blocker, unstarted } = await startBlocked({ url, hf, query }, 500)
  const told = await until(async () => {
    const why = await hf.why(blocker)
    return why.verdict.code === 'worker-blocked' && why
  }, 'it is said that the worker is blocked')
  expect(told.verdict.sentence).toMatch(/whose event loop a handler has blocked for/)
  await until(async () => (await unstarted()).length === 0, 'all that was not started is given back', 30_000)
  expect((await query(`select from holdfast.event where type = 'job.released'`)).length).toBeGreaterThan(0)
  const idle = await startMember({ url, kinds, settings })
  await until(
    async () =>
      (await query(`select from holdfast.job_status where finished_at is null and state = 'queued'`)).length === 0,
    'the other worker takes all of it',
    30_000,
  )
  // each runs once, on one of the two
  await until(() => startedBy(busy).size + startedBy(idle).size === handles.length, 'all have started', 30_000)
  expect(busy.started().length + idle.started().length).toBe(handles.length)
  expect(startedBy(idle).size).toBeGreaterThan(300)
  expect(await query('select from holdfast.refusal')).toEqual([])
  expect((await hf.sessions()).find(({ id }) => id === busy.session)).toMatchObject({ isLive: true })
  await end(busy, idle)
}, 120_000)

test('a worker that was blocked goes on with what is left, and starts nothing that was given back meanwhile', async ({
  url,
  open,
  query,
}) => {
  const hf = await open()
  const worker = await startMember({ url, kinds, settings: { ...settings, concurrency: 1 } })
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const handles = await hf.submitMany(blocking, [...short, { input: 4_000 as never }, ...short])
  await until(
    async () =>
      (await query('select from holdfast.job_status where finished_at is not null')).length === handles.length,
    'all are done',
    60_000,
  )
  const ran = worker.started().map(({ id }) => id)
  expect(ran.toSorted()).toEqual(handles.map(({ id }) => id as string).toSorted())
  const released = await query(`select from holdfast.event where type = 'job.released'`)
  expect(released.length).toBeGreaterThan(0)
}, 120_000)

test('a lease that somebody holds keeps a blocked process from nothing but giving back what is in it, and that is done once it is free', async ({
  url,
  hf,
  query,
  pool,
}) => {
  const { busy, unstarted } = await startBlocked({ url, hf, query }, 3_000)
  await until(async () => (await unstarted()).length > 1, 'jobs wait behind the handler')
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.lease for update')
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%holdfast.lease%' and datname = current_database()`
  await until(async () => (await query(waits)).length > 0, 'somebody waits for the lease', 60_000)
  const [{ now } = { now: '' }] = await query<{ now: string }>('select now()::text')
  const beats = 'select from holdfast.session where id = $1 and ended_at is null and heartbeat_at > $2'
  await until(async () => (await query(beats, [busy.session, now])).length > 0, 'it beats meanwhile')
  await stranger.query('commit')
  stranger.release()
  await until(async () => (await unstarted()).length === 0, 'so are those of the lease that was locked', 60_000)
  await end(busy)
}, 150_000)

test('what a heartbeat thread took from a blocked process and could not give back before it died is run, while others of the same lease run on', async ({
  url,
  hf,
  query,
  pool,
}) => {
  const sabotage = await makeSabotage()
  const patient = { lostAfterMs: 20_000, leaseMs: 60_000 }
  const worker = await startMember({
    url,
    kinds,
    settings: { ...settings, ...patient, concurrency: 2 },
    env: sabotage.env,
  })
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const long = [{ input: -1 as never }, { input: 8_000 as never }]
  const handles = await hf.submitMany(blocking, [...short, ...long, ...short])
  await worker.runs(handles[401]?.id as string)
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.lease for update')
  const waits = `pg_stat_activity where wait_event_type = 'Lock' and query like '%job.release%' and datname = current_database()`
  await until(async () => (await query(`select from ${waits}`)).length > 0, 'the thread gives jobs back')
  await sabotage.harm('throw')
  const lock = `select from pg_locks where locktype = 'advisory' and objid = $1 and database = (select oid from pg_database where datname = current_database())`
  await until(async () => (await query(lock, [worker.session])).length === 0, 'the thread is dead')
  // what it has sent would otherwise be carried out
  await query(`select pg_terminate_backend(pid, 10000) from ${waits}`)
  await stranger.query('commit')
  stranger.release()
  const ended = 'select from holdfast.job_status where finished_at is not null'
  await until(async () => (await query(ended)).length === handles.length - 1, 'all but one are done', 30_000)
  worker.order({ open: 'all' })
  await until(async () => (await query(ended)).length === handles.length, 'so is that')
  const ran = worker.started().map(({ id }) => id)
  expect(ran.toSorted()).toEqual(handles.map(({ id }) => id as string).toSorted())
}, 120_000)
