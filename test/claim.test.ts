import { type AnyJob, defineJob, type StageContext } from 'holdfast'
import { pauseQueue } from '#holdfast/reads/job.sql'
import { advanceJobs, retryJobs } from '#holdfast/settle/settle.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { nextDue } from '#holdfast/worker/claim.sql'
import type { ClaimedRow } from '#holdfast/worker/claim-batch'
import { expect, test, until } from './fixtures.ts'
import { queuedCrowd } from './places.ts'

test('of many workers that claim one queued job at once, one wins with attempt 1 and the others get nothing', async ({
  given,
}) => {
  const sessions = await Promise.all(Array.from({ length: 12 }, () => given.session()))
  for (let round = 0; round < 10; round++) {
    const { id, queue } = await given.queued()
    const claims = await Promise.all(sessions.map((sessionId) => given.claim({ sessionId, queue, most: 5 })))
    expect(claims.flat()).toMatchObject([{ id, attempt: 1 }])
  }
})

test('a claimed job cannot be claimed again', async ({ given }) => {
  const { queue } = await given.running()
  expect(await given.claim({ sessionId: await given.session(), queue })).toEqual([])
})

test('a job whose worker was lost is claimed again with exactly one attempt more', async ({ given }) => {
  const lost = await given.attemptThatWasLost()
  const sessions = await Promise.all([given.session(), given.session(), given.session()])
  const claims = await Promise.all(sessions.map((sessionId) => given.claim({ sessionId, queue: lost.queue })))
  expect(claims.flat()).toMatchObject([{ id: lost.id, attempt: lost.attempt + 1 }])
})

test('a claim never takes more than it asked for, and no job is claimed twice, however many claim at once', async ({
  given,
  query,
}) => {
  const queue = 'crowded'
  await query(queuedCrowd({ count: 3_000, queue: `'crowded'`, priority: '1 + n % 4' }))
  const sessions = await Promise.all(Array.from({ length: 16 }, () => given.session()))
  const claimed: ClaimedRow[] = []
  async function claimUntilEmpty(sessionId: number): Promise<void> {
    for (;;) {
      const most = 1 + Math.floor(Math.random() * 60)
      const rows = await given.claim({ sessionId, queue, most })
      expect(rows.length).toBeLessThanOrEqual(most)
      claimed.push(...rows)
      if (rows.length === 0) return
    }
  }
  await Promise.all(sessions.map(claimUntilEmpty))
  expect(claimed).toHaveLength(3000)
  expect(new Set(claimed.map(({ id }) => id)).size).toBe(3000)
  expect(claimed.every(({ attempt }) => attempt === 1)).toBe(true)
  const [row] = await query<{ running: string }>(
    `select count(*) as running from holdfast.job_status where finished_at is null and state = 'running' and session_id is not null`,
  )
  expect(Number(row?.running)).toBe(3000)
})

test('a job is never claimed before its run_at', async ({ given }) => {
  const { queue } = await given.queued({ delayMs: 3_600_000 })
  expect(await given.claim({ sessionId: await given.session(), queue })).toEqual([])
})

test('a lane in which nothing is scheduled has no next due job, or an idle worker would look without a pause', async ({
  given,
  store,
}) => {
  const lane = (queue: string) => ({ queue, kind: 'sample', priority: 2, stageCount: 1 })
  expect(await store.run(nextDue, { lanes: [lane('nobody-waits')] })).toEqual([{ due_ms: null }])
  const { queue } = await given.queued({ delayMs: 60_000 })
  const [next] = await store.run(nextDue, { lanes: [lane('nobody-waits'), lane(queue)] })
  expect(next?.due_ms).toBeGreaterThan(50_000)
})

test('urgent jobs are claimed first, and among equals the one that was due first', async ({ given }) => {
  const queue = 'ordered'
  const late = await given.queued({ queue, priority: 3 })
  const first = await given.queued({ queue, priority: 2 })
  const second = await given.queued({ queue, priority: 2 })
  const urgent = await given.queued({ queue, priority: 1 })
  const sessionId = await given.session()
  const order: string[] = []
  for (let n = 0; n < 4; n++) order.push(...(await given.claim({ sessionId, queue })).map(({ id }) => id))
  expect(order).toEqual([urgent.id, first.id, second.id, late.id])
})

test('the jobs of a paused queue are left alone until it is resumed', async ({ given, store }) => {
  const { id, queue } = await given.queued()
  const sessionId = await given.session()
  await store.run(pauseQueue, { name: queue, isPaused: true })
  expect(await given.claim({ sessionId, queue })).toEqual([])
  await store.run(pauseQueue, { name: queue, isPaused: false })
  expect(await given.claim({ sessionId, queue })).toMatchObject([{ id }])
})

test('a job of a kind that the worker does not know is left alone', async ({ given }) => {
  const { queue } = await given.queued({ kind: 'of-another-program' })
  expect(await given.claim({ sessionId: await given.session(), queue, kind: 'sample' })).toEqual([])
})

test('a job at a stage that this version of its kind does not have is left to a newer one', async ({ given }) => {
  const { id, queue } = await given.atSecondStage()
  const sessionId = await given.session()
  expect(await given.claim({ sessionId, queue, stageCount: 1 })).toEqual([])
  expect(await given.claim({ sessionId, queue, stageCount: 2 })).toMatchObject([{ id, stage: 1 }])
})

test('a session that was ended claims nothing', async ({ given, query }) => {
  const { queue } = await given.queued()
  const sessionId = await given.session()
  await query('update holdfast.session set ended_at = now() where id = $1', [sessionId])
  expect(await given.claim({ sessionId, queue })).toEqual([])
})

test('a claim hands over the input and the outputs of the earlier stages', async ({ given }) => {
  const { queue } = await given.atSecondStage({ input: { page: 7 } })
  const [row] = await given.claim({ sessionId: await given.session(), queue })
  expect(JSON.parse(row?.input as string)).toEqual({ page: 7 })
  expect(JSON.parse(row?.outputs as string)).toEqual({ one: 'first' })
})

test('cancel and claim of the same job: whichever is first, the job ends cancelled once and its claimer cannot settle it', async ({
  given,
  hf,
  query,
}) => {
  const sessionId = await given.session()
  for (let round = 0; round < 30; round++) {
    const { id, queue } = await given.queued()
    const [claimed] = await Promise.all([given.claim({ sessionId, queue }), hf.cancel(id)])
    const job = await hf.get(id)
    expect(job).toMatchObject({ state: 'cancelled', attempt: claimed.length })
    const events = await query('select type from holdfast.event where job_id = $1 order by seq', [id])
    expect(events).toEqual([{ type: 'job.submitted' }, { type: 'job.cancelled' }])
  }
})

test('of a claim of many jobs, each handler is given what is its own', async ({ given, open, store, query }) => {
  const ran: { id: string; about: unknown }[] = []
  const tell = ({ job, input, stage, attempt, outputs }: StageContext<unknown, unknown>): number => {
    const { kind, tenant } = job
    const submittedAt = job.submittedAt.getTime()
    ran.push({ id: job.id, about: { kind, tenant, submittedAt, input, stage, attempt, outputs } })
    return (input as { n: number }).n
  }
  const short = defineJob('short', { run: tell })
  const long = defineJob('long', {
    stages: [
      { name: 'one', run: tell },
      { name: 'two', run: tell },
    ],
  })
  const kinds: AnyJob[] = [short, long]
  const numbers = Array.from({ length: 240 }, (_, n) => n)
  const inputOf = (n: number) => ({ n, text: 'x'.repeat(n % 7 === 0 ? 1_000 : n) })
  const hf = await open({ jobs: kinds, concurrency: 300 })
  const submit = (some: number[]) =>
    hf.submitMixed(
      some.map((n) => ({
        job: kinds[n % 2] as AnyJob,
        input: inputOf(n),
        tenant: `tenant-${n % 5}`,
        priority: 1 + (n % 4),
        ...(n % 11 === 0 ? { meta: { n } } : {}),
      })),
    )

  // the first third has run before: short jobs wait for their second attempt, long ones for their second stage
  const early = await submit(numbers.slice(0, 80))
  const sessionId = await given.session()
  const claim = async (kind: string) =>
    (await given.claim({ sessionId, queue: 'default', kind, most: 100 })).map(heldFenceOf)
  const retried = await claim('short')
  const advanced = await claim('long')
  expect([retried.length, advanced.length]).toEqual([40, 40])
  const numberOf = new Map(early.map(({ id }, n) => [id, n]))
  await store.run(retryJobs, {
    fences: retried,
    errors: retried.map(() => '{}'),
    delaysMs: retried.map(() => 0),
  })
  await store.run(advanceJobs, {
    fences: advanced,
    outputs: advanced.map(({ id }) => String(numberOf.get(id))),
    stageNames: advanced.map(() => 'one'),
  })
  const handles = [...early, ...(await submit(numbers.slice(80)))]
  await hf.work()
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'all have ended',
  )

  const times = await query<{ id: string; submitted_at: Date }>(
    'select id, submitted_at from holdfast.job_status where finished_at is not null',
  )
  const timeOf = new Map(times.map((row) => [row.id, row.submitted_at.getTime()]))
  const expected = handles.flatMap(({ id }, n) => {
    const about = {
      kind: n % 2 ? 'long' : 'short',
      tenant: `tenant-${n % 5}`,
      submittedAt: timeOf.get(id),
      input: inputOf(n),
    }
    const first = { ...about, stage: n % 2 ? 'one' : 'run', attempt: 1, outputs: {} }
    const second = { ...about, stage: 'two', attempt: 2, outputs: { one: n } }
    if (n < 80) return [{ id, about: n % 2 ? second : { ...first, attempt: 2 } }]
    return n % 2 ? [first, second].map((one) => ({ id, about: one })) : [{ id, about: first }]
  })
  const inOrder = (all: { id: string }[]) => all.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  expect(inOrder(ran)).toEqual(inOrder(expected))
})

test('a worker runs jobs however the server writes times', async ({ url, query, open }) => {
  await query(`alter database ${new URL(url).pathname.slice(1)} set datestyle = 'SQL, DMY'`)
  const seen: number[] = []
  const timed = defineJob('timed', {
    run: ({ job }) => {
      seen.push(job.submittedAt.getTime())
    },
  })
  const hf = await open({ jobs: [timed] })
  await hf.work()
  const { id, result } = await hf.submit(timed, null)
  await result({ timeout: 10_000 })
  const [row] = await query<{ ms: number }>(
    `select floor(extract(epoch from submitted_at) * 1000)::float8 as ms from holdfast.job_status where id = $1`,
    [id],
  )
  expect(seen).toEqual([row?.ms])
})

test('a time that a claim could not answer is refused, even if it is written by hand', async ({ given, query }) => {
  const { id } = await given.queued()
  for (const never of ['-infinity', 'infinity'])
    await expect(query('update holdfast.ready set run_at = $1 where job_id = $2', [never, id])).rejects.toMatchObject({
      code: '23514',
    })
})
