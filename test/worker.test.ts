import { type AttemptAborted, defineJob, PermanentError } from 'holdfast'
import { z } from 'zod'
import { expect, gate, test, until } from './fixtures.ts'
import { queueAgain } from './places.ts'

/** So rare that only a wake-up can be in time. */
const never = 3_600_000
const idle = `select from holdfast.session where wants_wake and ended_at is null`
const listening = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and (query like 'listen %' or query like '%bus.probe%')`

test('a job runs through its stages, each seeing the input and what the earlier ones returned', async ({ open }) => {
  const report = defineJob('report', {
    input: z.object({ name: z.string() }),
    stages: [
      { name: 'read', run: ({ input }) => ({ words: input.name.split(' ') }) },
      { name: 'count', run: ({ outputs }) => outputs.read.words.length },
      { name: 'nothing', run: () => {} },
      { name: 'tell', run: ({ input, outputs }) => `${input.name}: ${outputs.count} ${outputs.nothing}` },
    ],
  })
  const hf = await open({ jobs: [report] })
  await hf.work()
  const handle = await hf.submit(report, { name: 'one two' })
  expect(await handle.result()).toEqual({
    state: 'succeeded',
    output: 'one two: 2 null',
    outputs: { read: { words: ['one', 'two'] }, count: 2, tell: 'one two: 2 null' },
  })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 4, stage: 3, failures: 0 })
})

test('a kind without an output has the result null', async ({ open }) => {
  const quiet = defineJob('quiet', { run: () => {} })
  const hf = await open({ jobs: [quiet] })
  await hf.work()
  expect(await (await hf.submit(quiet, null)).result()).toEqual({ state: 'succeeded', output: null, outputs: {} })
})

test('the result of a last stage that returned nothing is null, not what an earlier stage returned', async ({
  open,
}) => {
  const clean = defineJob('clean', {
    stages: [
      { name: 'make', run: () => 'made' },
      { name: 'sweep', run: () => {} },
    ],
  })
  const hf = await open({ jobs: [clean] })
  await hf.work()
  expect(await (await hf.submit(clean, null)).result()).toMatchObject({ output: null, outputs: { make: 'made' } })
})

test('an idle worker is woken by a submit, however rarely it polls', async ({ open, query }) => {
  const greet = defineJob('greet', { run: () => 'hello' })
  const worker = await open({ jobs: [greet], pollMs: never })
  const client = await open()
  await worker.work()
  for (let round = 0; round < 3; round++) {
    await until(async () => (await query(idle)).length === 1, 'the worker is idle')
    const handle = await client.submit(greet, null)
    expect(await handle.result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
  }
})

test('a worker that cannot listen finds jobs by polling', async ({ open }) => {
  const greet = defineJob('greet', { run: () => 'hello' })
  const hf = await open({ jobs: [greet], pooled: true, pollMs: 100 })
  await hf.work()
  for (let round = 0; round < 3; round++)
    expect(await (await hf.submit(greet, null)).result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
})

test('a worker whose listening connection is cut listens again, and misses nothing', async ({ open, query }) => {
  const greet = defineJob('greet', { run: () => 'hello' })
  const worker = await open({ jobs: [greet], pollMs: never })
  const client = await open()
  await worker.work()
  for (let round = 0; round < 3; round++) {
    await until(async () => (await query(`select pg_terminate_backend(pid) ${listening}`)).length > 0, 'it listens')
    const handle = await client.submit(greet, null)
    expect(await handle.result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
  }
})

test('no job starts before its run_at, whoever polls', async ({ open, query }) => {
  const startedAt = new Map<string, number>()
  const punctual = defineJob('punctual', { run: ({ job }) => void startedAt.set(job.id, Date.now()) })
  const engines = await Promise.all([open({ jobs: [punctual], pollMs: 10 }), open({ jobs: [punctual], pollMs: 10 })])
  await Promise.all(engines.map((hf) => hf.work()))
  const handles = await Promise.all(
    Array.from({ length: 40 }, (_, n) => engines[0].submit(punctual, null, { delayMs: n * 15 })),
  )
  const due = await query<{ id: string; run_at: Date }>('select job_id as id, run_at from holdfast.ready')
  await Promise.all(handles.map((handle) => handle.result({ timeout: 15_000 })))
  expect(due.length).toBeGreaterThan(10)
  for (const { id, run_at } of due) expect(startedAt.get(id)).toBeGreaterThanOrEqual(run_at.getTime())
})

test('a backoff survives the restart of its worker, and is not cut short by it', async ({ open, query }) => {
  const startedAt: number[] = []
  const flaky = defineJob('flaky', {
    backoff: { baseMs: 800, factor: 1 },
    run: () => {
      startedAt.push(Date.now())
      if (startedAt.length === 1) throw new Error('not yet')
      return 'at last'
    },
  })
  const first = await open({ jobs: [flaky], pollMs: 20 })
  await first.work()
  const { id } = await first.submit(flaky, null)
  const [waiting] = await until(async () => {
    const rows = await query<{ run_at: Date; failures: number }>(
      `select run_at, failures from holdfast.job_status where finished_at is null and state = 'queued' and failures = 1`,
    )
    return rows.length > 0 ? rows : null
  }, 'the job waits for its retry')
  await first.close()
  const second = await open({ jobs: [flaky], pollMs: 20 })
  await second.work()
  expect(await second.handle(id, flaky).result({ timeout: 10_000 })).toMatchObject({ output: 'at last' })
  expect(startedAt[1]).toBeGreaterThanOrEqual((waiting as { run_at: Date }).run_at.getTime())
})

test('a job fails once its retries are spent, and each failure is in its timeline', async ({ open }) => {
  const hopeless = defineJob('hopeless', {
    retries: 2,
    backoff: { baseMs: 1 },
    run: ({ attempt }) => {
      throw new Error(`failure ${attempt}`)
    },
  })
  const hf = await open({ jobs: [hopeless] })
  await hf.work()
  const handle = await hf.submit(hopeless, null)
  await expect(handle.result()).rejects.toMatchObject({
    code: 'job_failed',
    details: { error: { code: 'handler_failed', message: 'failure 3' } },
  })
  expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', attempt: 3, failures: 3, crashes: 0 })
  const timeline = await hf.timeline(handle.id)
  expect(timeline.map(({ type, attempt }) => `${type} ${attempt}`)).toEqual([
    'job.submitted 0',
    'job.retried 1',
    'job.retried 2',
    'job.failed 3',
  ])
})

test('a permanent error fails the job at once, whatever retries are left', async ({ open }) => {
  const wrong = defineJob('wrong', {
    run: () => {
      throw new PermanentError('never')
    },
  })
  const hf = await open({ jobs: [wrong] })
  await hf.work()
  const handle = await hf.submit(wrong, null)
  await expect(handle.result()).rejects.toMatchObject({ details: { error: { code: 'permanent', message: 'never' } } })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 1 })
})

test('a handler that runs too long is told so by its signal, and then retried', async ({ open }) => {
  const reasons: string[] = []
  const slow = defineJob('slow', {
    timeoutMs: 60,
    retries: 1,
    backoff: { baseMs: 1 },
    run: ({ signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          reasons.push((signal.reason as AttemptAborted).reason)
          reject(signal.reason)
        }),
      ),
  })
  const hf = await open({ jobs: [slow] })
  await hf.work()
  const handle = await hf.submit(slow, null)
  await expect(handle.result()).rejects.toMatchObject({
    details: { error: { code: 'timeout', message: expect.stringContaining('60 ms') } },
  })
  expect(reasons).toEqual(['timeout', 'timeout'])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', attempt: 2, failures: 2, crashes: 0 })
})

test('a handler that ignores its signal is given up after its grace, and its place is free again', async ({
  open,
  query,
}) => {
  const finish = gate()
  const unresponsive = defineJob('unresponsive', { timeoutMs: 50, retries: 0, run: () => finish.promise })
  const greet = defineJob('greet', { run: () => 'hello' })
  const hf = await open({ jobs: [unresponsive, greet], timeoutGraceMs: 100, concurrency: 1 })
  await hf.work()
  const hung = await hf.submit(unresponsive, null)
  await expect(hung.result()).rejects.toMatchObject({ details: { error: { code: 'timeout' } } })
  expect(await (await hf.submit(greet, null)).result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
  finish.open()
  expect(await (await hf.submit(greet, null)).result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
  expect(await hf.get(hung.id)).toMatchObject({ state: 'failed', attempt: 1 })
  expect(await query('select * from holdfast.refusal')).toEqual([])
})

test('a handler that succeeds after its time-out but within its grace has succeeded', async ({ open }) => {
  const late = defineJob('late', {
    timeoutMs: 30,
    run: ({ signal }) =>
      new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('in the nick of time'))),
  })
  const hf = await open({ jobs: [late] })
  await hf.work()
  expect(await (await hf.submit(late, null)).result()).toMatchObject({ output: 'in the nick of time' })
})

test('progress and log lines are readable while the handler runs, and stand before its outcome', async ({ open }) => {
  const finish = gate()
  const chatty = defineJob('chatty', {
    run: async ({ progress, log }) => {
      log('begun', { step: 1 })
      progress(1, 4, 'reading')
      await finish.promise
      progress(4, 4)
      log('done')
    },
  })
  const hf = await open({ jobs: [chatty] })
  await hf.work()
  const handle = await hf.submit(chatty, null)
  await until(async () => (await hf.get(handle.id))?.progress, 'progress is readable')
  expect((await hf.get(handle.id))?.progress).toMatchObject({ done: 1, total: 4, note: 'reading', attempt: 1 })
  finish.open()
  await handle.result()
  expect((await hf.get(handle.id))?.progress).toMatchObject({ done: 4, total: 4 })
  const timeline = await hf.timeline(handle.id)
  expect(timeline.map(({ type }) => type)).toEqual(['job.submitted', 'job.log', 'job.log', 'job.finished'])
  expect(timeline[1]?.data).toEqual({ message: 'begun', data: { step: 1 } })
})

test('progress never goes down within an attempt, and a lower report is no lost lease', async ({ open, query }) => {
  const lower = gate()
  const finish = gate()
  const wavering = defineJob('wavering', {
    run: async ({ progress, log }) => {
      progress(5)
      await lower.promise
      progress(3)
      log('reported less')
      await finish.promise
    },
  })
  const hf = await open({ jobs: [wavering] })
  await hf.work()
  const handle = await hf.submit(wavering, null)
  await until(async () => (await hf.get(handle.id))?.progress, 'progress is readable')
  lower.open()
  await until(async () => (await hf.timeline(handle.id)).length > 1, 'the lower report was written')
  expect((await hf.get(handle.id))?.progress).toMatchObject({ done: 5 })
  finish.open()
  await handle.result()
  expect(await query('select * from holdfast.refusal')).toEqual([])
})

test("reports that make no sense are the handler's error, and log data that cannot be stored is named", async ({
  open,
}) => {
  const wrong = defineJob('wrong', { retries: 0, run: ({ progress }) => progress(Number.NaN) })
  const odd = defineJob('odd', { run: ({ log }) => log('nul \0', { n: 1n }) })
  const hf = await open({ jobs: [wrong, odd] })
  await hf.work()
  await expect((await hf.submit(wrong, null)).result()).rejects.toMatchObject({
    details: { error: { message: expect.stringContaining('progress') } },
  })
  const handle = await hf.submit(odd, null)
  await handle.result()
  expect((await hf.timeline(handle.id))[1]?.data).toEqual({
    message: 'nul ',
    dropped: expect.stringContaining('bigint'),
  })
})

test('a handler whose job was taken away is told so, and whatever it still writes is refused and recorded', async ({
  open,
  query,
}) => {
  const signals: AbortSignal[] = []
  const write = gate()
  const finish = gate()
  const zombie = defineJob('zombie', {
    run: async ({ attempt, signal, progress, log }) => {
      signals.push(signal)
      await write.promise
      if (attempt > 1) {
        log('from its successor')
        return finish.promise.then(() => `attempt ${attempt}`)
      }
      progress(99)
      log('from the grave')
      return 'attempt 1'
    },
  })
  const hf = await open({ jobs: [zombie], heartbeatMs: 100 })
  await hf.work()
  const handle = await hf.submit(zombie, null)
  await until(() => signals.length === 1, 'it runs')
  await queueAgain(query, [handle.id], { crashes: 1 })
  await until(() => signals[0]?.aborted, 'its signal fires')
  expect(signals[0]?.reason).toMatchObject({ reason: 'lease_lost' })
  await until(() => signals.length === 2, 'its successor runs')
  write.open()
  await until(async () => (await query('select from holdfast.refusal')).length >= 3, 'its writes are refused')
  const refusals = await query('select write, attempt from holdfast.refusal order by write')
  expect(refusals).toEqual([
    { write: 'finish', attempt: 1 },
    { write: 'log', attempt: 1 },
    { write: 'progress', attempt: 1 },
  ])
  finish.open()
  expect(await handle.result({ timeout: 10_000 })).toMatchObject({ output: 'attempt 2' })
  expect((await hf.timeline(handle.id)).map(({ type, attempt }) => `${type} ${attempt}`)).toEqual([
    'job.submitted 0',
    'job.log 2',
    'job.finished 2',
  ])
  expect((await hf.get(handle.id))?.progress).toBe(null)
})

test('a worker never runs more handlers at once than it may, and holds no jobs that it cannot start', async ({
  open,
  query,
}) => {
  const finish = gate()
  let running = 0
  let most = 0
  const long = defineJob('long', {
    run: async () => {
      running += 1
      most = Math.max(most, running)
      await finish.promise
      running -= 1
    },
  })
  const hf = await open({ jobs: [long] })
  const handles = await hf.submitMany(
    long,
    Array.from({ length: 20 }, (_, input) => ({ input })),
  )
  await hf.work({ concurrency: 3 })
  await until(() => running === 3, 'all places are taken')
  await until(async () => (await query(`select from holdfast.session where wants_wake`)).length === 0)
  expect(
    await query(`select count(*)::int as n from holdfast.job_status where finished_at is null and state = 'running'`),
  ).toEqual([{ n: 3 }])
  finish.open()
  for (const { id } of handles) await hf.handle(id, long).result({ timeout: 10_000 })
  expect(most).toBe(3)
})

test('jobs that were claimed ahead but cannot be started soon are given back, at no cost', async ({ open, query }) => {
  const finish = gate()
  const mixed = defineJob('mixed', { input: z.boolean(), run: ({ input }) => (input ? finish.promise : undefined) })
  const hf = await open({ jobs: [mixed], holdMs: 100, concurrency: 2 })
  await hf.submitMany(
    mixed,
    Array.from({ length: 1_500 }, () => ({ input: false })),
  )
  await hf.submitMany(
    mixed,
    Array.from({ length: 500 }, () => ({ input: true })),
  )
  await hf.work()
  await until(async () => {
    const [row] = await query<{ running: number; all: number }>(
      `select count(*) filter (where state = 'running')::int as running, count(*)::int as all from holdfast.job_status where finished_at is null`,
    )
    return row?.all === 500 && row.running === 2
  }, 'only what runs is held')
  expect(
    await query(
      'select max(failures) as failures, max(crashes) as crashes from holdfast.job_status where finished_at is null',
    ),
  ).toEqual([{ failures: 0, crashes: 0 }])
  finish.open()
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null limit 1')).length === 0,
    'all are done',
  )
})

test('many jobs on two workers each run exactly once', async ({ open, query }) => {
  const runs = new Map<string, number>()
  const counted = defineJob('counted', { run: ({ job }) => void runs.set(job.id, (runs.get(job.id) ?? 0) + 1) })
  const engines = await Promise.all([open({ jobs: [counted] }), open({ jobs: [counted] })])
  await Promise.all(engines.map((hf) => hf.work()))
  await engines[0].submitMany(
    counted,
    Array.from({ length: 3_000 }, (_, input) => ({ input })),
  )
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null limit 1')).length === 0,
    'all are done',
  )
  expect(runs.size).toBe(3_000)
  expect([...runs.values()].every((count) => count === 1)).toBe(true)
  expect(
    await query(
      'select state, count(*)::int as n from holdfast.job_status where finished_at is not null group by state',
    ),
  ).toEqual([{ state: 'succeeded', n: 3_000 }])
  expect(await query(`select count(*)::int as n from holdfast.event where type = 'job.finished'`)).toEqual([
    { n: 3_000 },
  ])
})

test('a busy kind does not keep the others of its priority waiting', async ({ open }) => {
  const order: string[] = []
  const busy = defineJob('busy', { run: () => void order.push('busy') })
  const rare = defineJob('rare', { run: () => void order.push('rare') })
  const hf = await open({ jobs: [busy, rare], concurrency: 1, batchSize: 10 })
  await hf.submitMany(
    busy,
    Array.from({ length: 300 }, (_, input) => ({ input })),
  )
  const handle = await hf.submit(rare, null)
  await hf.work()
  await handle.result({ timeout: 10_000 })
  expect(order.indexOf('rare')).toBeLessThan(150)
})

test('a paused queue is left alone by a running worker until it is resumed', async ({ open, query }) => {
  const greet = defineJob('greet', { queue: 'night', run: () => 'hello' })
  const other = defineJob('other', { run: () => 'done' })
  const hf = await open({ jobs: [greet, other], pollMs: 50 })
  await hf.pauseQueue('night')
  await hf.work()
  const paused = await hf.submit(greet, null)
  await (await hf.submit(other, null)).result()
  expect(await hf.get(paused.id)).toMatchObject({ state: 'queued', attempt: 0 })
  await hf.resumeQueue('night')
  expect(await paused.result({ timeout: 10_000 })).toMatchObject({ output: 'hello' })
  expect(await query('select paused_at from holdfast.queue')).toEqual([{ paused_at: null }])
})

test('a queue that is resumed wakes all workers, also those that have not asked for it', async ({ hf, pool }) => {
  const client = await pool.connect()
  try {
    const heard: (string | undefined)[] = []
    client.on('notification', ({ channel }) => heard.push(channel))
    await client.query('listen holdfast_wake')
    await hf.pauseQueue('night')
    await client.query('select 1')
    expect(heard).toEqual([])
    await hf.resumeQueue('night')
    await until(() => heard.length === 1, 'the wake-up')
  } finally {
    // the pool is closed before anything that runs when a test has finished, and waits for this connection
    client.release(true)
  }
})

test('a worker for named queues leaves the others alone', async ({ open }) => {
  const here = defineJob('here', { queue: 'here', run: () => 'done' })
  const there = defineJob('there', { queue: 'there', run: () => 'done' })
  const hf = await open({ jobs: [here, there], pollMs: 20 })
  await hf.work({ queues: ['here'] })
  const left = await hf.submit(there, null)
  await (await hf.submit(here, null)).result()
  await (await hf.submit(here, null)).result()
  expect(await hf.get(left.id)).toMatchObject({ state: 'queued', attempt: 0 })
})

test('a worker makes its kinds known', async ({ open, hf }) => {
  const two = defineJob('two', {
    queue: 'q',
    stages: [
      { name: 'a', run: () => {} },
      { name: 'b', optional: true, run: () => {} },
    ],
  })
  await (await open({ jobs: [two] })).work()
  expect(await hf.kinds()).toMatchObject([
    {
      name: 'two',
      queue: 'q',
      stages: [
        { name: 'a', optional: false },
        { name: 'b', optional: true },
      ],
    },
  ])
})
