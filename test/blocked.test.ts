import { defineJob } from 'holdfast'
import { expect, quick, test, until } from './fixtures.ts'
import { startWorker, type WorkerProcess } from './processes/worker.ts'

const blocking = defineJob('blocking', { run: () => 0 as unknown })
const settings = { ...quick, heartbeatMs: 100, holdMs: 500 }

test('jobs that wait behind a handler that blocks its process are given back, and another worker runs them', async ({
  url,
  open,
  query,
}) => {
  const hf = await open()
  const busy = await startWorker({ url, ...settings, concurrency: 1 })
  // short ones make the worker claim ahead; one of them then blocks it for much longer than this test may take
  const short = Array.from({ length: 400 }, () => ({ input: 0 as never }))
  const handles = await hf.submitMany(blocking, [...short, { input: 120_000 as never }, ...short])
  const blocker = handles[400]?.id as string
  await busy.told(({ started }) => started === blocker)
  const startedBy = (worker: WorkerProcess) => new Set(worker.lines.flatMap(({ started }) => started ?? []))
  const unstarted = async () => {
    const rows = await query<{ id: string }>('select id from holdfast.live_job where session_id = $1', [busy.sessionId])
    return rows.filter(({ id }) => !startedBy(busy).has(id))
  }
  const told = await until(async () => {
    const why = await hf.why(blocker)
    return why.verdict.code === 'worker-blocked' && why
  }, 'it is said that the worker is blocked')
  expect(told.verdict.sentence).toMatch(/whose event loop a handler has blocked for/)
  await until(async () => (await unstarted()).length === 0, 'all that was not started is given back', 30_000)
  expect((await query(`select from holdfast.event where type = 'job.released'`)).length).toBeGreaterThan(0)
  const idle = await startWorker({ url, ...settings })
  await until(
    async () => (await query(`select from holdfast.live_job where state = 'queued'`)).length === 0,
    'the other worker takes all of it',
    30_000,
  )
  // each runs once, on one of the two
  await until(() => startedBy(busy).size + startedBy(idle).size === handles.length, 'all have started', 30_000)
  expect(busy.lines.length + idle.lines.length).toBe(handles.length + 2)
  expect(startedBy(idle).size).toBeGreaterThan(300)
  expect(await query('select from holdfast.refusal')).toEqual([])
  expect((await hf.sessions()).find(({ id }) => id === busy.sessionId)).toMatchObject({ isLive: true })
  // the database can't be dropped while a blocked process holds on to it
  for (const worker of [busy, idle]) worker.kill('SIGKILL')
  await Promise.all([busy.exited, idle.exited])
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
    async () => (await query('select from holdfast.finished_job')).length === handles.length,
    'all are done',
    60_000,
  )
  const ran = worker.lines.flatMap(({ started }) => started ?? [])
  expect(ran.toSorted()).toEqual(handles.map(({ id }) => id as string).toSorted())
  const released = await query(`select from holdfast.event where type = 'job.released'`)
  expect(released.length).toBeGreaterThan(0)
}, 120_000)
