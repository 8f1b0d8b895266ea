import { defineJob } from 'holdfast'
import { expect, type Fixtures, quick, test, until } from './fixtures.ts'
import { startWorker, type WorkerProcess } from './processes/worker.ts'

const blocking = defineJob('blocking', { run: () => 0 as unknown })
const settings = { ...quick, heartbeatMs: 100, holdMs: 500 }

const startedBy = (worker: WorkerProcess) => new Set(worker.lines.flatMap(({ started }) => started ?? []))

/** A worker that a handler blocks for much longer than a test may take, with jobs that it has claimed ahead. */
async function startBlocked({ url, hf, query }: Pick<Fixtures, 'url' | 'hf' | 'query'>, holdMs: number) {
  const busy = await startWorker({ url, ...settings, holdMs, concurrency: 1 })
  // short ones make the worker claim ahead; one of them then blocks it
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const handles = await hf.submitMany(blocking, [...short, { input: 120_000 as never }, ...short])
  const blocker = handles[400]?.id as string
  await busy.told(({ started }) => started === blocker)
  const unstarted = async () => {
    const rows = await query<{ id: string }>('select id from holdfast.job_status where finished_at is null and session_id = $1', [busy.sessionId])
    return rows.map(({ id }) => id).filter((id) => !startedBy(busy).has(id))
  }
  return { busy, handles, blocker, unstarted }
}

/** The database can't be dropped while a blocked process holds on to it. */
async function end(...workers: WorkerProcess[]): Promise<void> {
  for (const worker of workers) worker.kill('SIGKILL')
  await Promise.all(workers.map(({ exited }) => exited))
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
  const idle = await startWorker({ url, ...settings })
  await until(
    async () => (await query(`select from holdfast.job_status where finished_at is null and state = 'queued'`)).length === 0,
    'the other worker takes all of it',
    30_000,
  )
  // each runs once, on one of the two
  await until(() => startedBy(busy).size + startedBy(idle).size === handles.length, 'all have started', 30_000)
  expect(busy.lines.length + idle.lines.length).toBe(handles.length + 2)
  expect(startedBy(idle).size).toBeGreaterThan(300)
  expect(await query('select from holdfast.refusal')).toEqual([])
  expect((await hf.sessions()).find(({ id }) => id === busy.sessionId)).toMatchObject({ isLive: true })
  await end(busy, idle)
}, 120_000)

test('a worker that was blocked goes on with what is left, and starts nothing that was given back meanwhile', async ({
  url,
  open,
  query,
}) => {
  const hf = await open()
  const worker = await startWorker({ url, ...settings, concurrency: 1 })
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const handles = await hf.submitMany(blocking, [...short, { input: 4_000 as never }, ...short])
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is not null')).length === handles.length,
    'all are done',
    60_000,
  )
  const ran = worker.lines.flatMap(({ started }) => started ?? [])
  expect(ran.toSorted()).toEqual(handles.map(({ id }) => id as string).toSorted())
  const released = await query(`select from holdfast.event where type = 'job.released'`)
  expect(released.length).toBeGreaterThan(0)
}, 120_000)

test('a job that somebody holds locked keeps no other from being given back by a blocked process', async ({
  url,
  hf,
  query,
  pool,
}) => {
  const { busy, unstarted } = await startBlocked({ url, hf, query }, 3_000)
  const [first] = await until(async () => {
    const ids = await unstarted()
    return ids.length > 1 && ids
  }, 'jobs wait behind the handler')
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.lease where job_ids @> array[$1::uuid] for update', [first])
  await until(async () => (await unstarted()).join() === first, 'all the others are given back', 60_000)
  await stranger.query('commit')
  stranger.release()
  await until(async () => (await unstarted()).length === 0, 'so is the one that was locked', 60_000)
  await end(busy)
}, 150_000)
