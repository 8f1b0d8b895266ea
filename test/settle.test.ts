import type { Fence } from '#holdfast/job/id'
import type { Store } from '#holdfast/postgres/store'
import type { Outcome } from '#holdfast/settle/outcome'
import { makeSettler, type Settler } from '#holdfast/settle/settle'
import { retryJobs } from '#holdfast/settle/settle.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import type { ClaimedRow } from '#holdfast/worker/claim-batch'
import { reportProgress, writeLogs } from '#holdfast/worker/progress.sql'
import { expect, test } from './fixtures.ts'
import type { Running } from './given.ts'
import { queueAgain } from './places.ts'

const finish: Outcome = { move: 'finish', stageName: 'one', output: '"done"' }
const advance: Outcome = { move: 'advance', stageName: 'one', output: '"halfway"' }
const retry: Outcome = { move: 'retry', error: { code: 'handler_failed', message: 'It broke.' }, delayMs: 60_000 }
const fail: Outcome = { move: 'fail', error: { code: 'permanent', message: 'It broke.' }, isOptional: false }
const release: Outcome = { move: 'release' }
const everyOutcome = [finish, advance, retry, fail, { ...fail, isOptional: true }, release]

function settlerOf(store: Store, _sessionId: number, refused: { fences: Fence[]; write: string }[] = []): Settler {
  return makeSettler({
    store,
    batchSize: 500,
    givenUp: new AbortController().signal,
    onRefused: (fences, write) => refused.push({ fences, write }),
    onError: (error) => {
      throw error
    },
  })
}

test('a job that finishes is final, with its output readable and one event', async ({ given, store, hf }) => {
  const mine = await given.running()
  expect(await settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: finish })).toBe('settled')
  expect(await hf.get(mine.id)).toMatchObject({
    state: 'succeeded',
    attempt: 1,
    outputs: { one: 'done' },
    sessionId: null,
  })
  expect((await hf.timeline(mine.id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
})

test.for(everyOutcome)(
  'a worker that lost its lease cannot $move the job, and its try is recorded',
  async (outcome, { given, store, hf, query }) => {
    const stale = await given.attemptThatWasLost()
    const before = await hf.get(stale.id)
    const refused: { fences: Fence[]; write: string }[] = []
    const settler = settlerOf(store, stale.sessionId, refused)
    expect(await settler.settle({ fence: stale, outcome })).toBe('lease_lost')
    expect(await hf.get(stale.id)).toEqual(before)
    expect((await hf.timeline(stale.id)).map(({ type }) => type)).toEqual(['job.submitted'])
    expect(refused).toHaveLength(1)
    expect(await query('select job_id, attempt, session_id::int from holdfast.refusal')).toEqual([
      { job_id: stale.id, attempt: stale.attempt, session_id: stale.sessionId },
    ])
  },
)

test.for(everyOutcome)(
  'a worker whose job another one runs now cannot $move it',
  async (outcome, { given, store, hf }) => {
    const stale = await given.attemptThatWasLost()
    const [successor] = await given.claim({ sessionId: await given.session(), queue: stale.queue })
    expect(await settlerOf(store, stale.sessionId).settle({ fence: stale, outcome })).toBe('lease_lost')
    expect(await hf.get(stale.id)).toMatchObject({ state: 'running', attempt: successor?.attempt, outputs: {} })
  },
)

test('a worker that lost its lease cannot report progress', async ({ given, store, hf }) => {
  const stale = await given.attemptThatWasLost()
  await given.claim({ sessionId: await given.session(), queue: stale.queue })
  const report = { fences: [stale], done: [9], totals: [10], notes: [null] }
  expect(await store.run(reportProgress, report)).toEqual([])
  expect((await hf.get(stale.id))?.progress).toBe(null)
})

test('a worker that lost its lease cannot write an event', async ({ given, store, hf }) => {
  const stale = await given.attemptThatWasLost()
  await given.claim({ sessionId: await given.session(), queue: stale.queue })
  expect(await store.run(writeLogs, { fences: [stale], data: ['{}'] })).toEqual([])
  expect(await hf.timeline(stale.id)).toHaveLength(1)
})

test.for(everyOutcome)(
  'settling twice ($move): the second gets nothing and writes nothing',
  async (outcome, { given, store, hf }) => {
    const mine = await given.running()
    const settler = settlerOf(store, mine.sessionId)
    expect(await settler.settle({ fence: mine, outcome })).toBe('settled')
    const [job, timeline] = [await hf.get(mine.id), await hf.timeline(mine.id)]
    for (const second of everyOutcome) expect(await settler.settle({ fence: mine, outcome: second })).toBe('lease_lost')
    expect(await hf.get(mine.id)).toEqual(job)
    expect(await hf.timeline(mine.id)).toEqual(timeline)
  },
)

test('settling twice at the same moment: one is settled, the other refused', async ({ given, store, hf }) => {
  const mine = await given.running()
  const settler = settlerOf(store, mine.sessionId)
  const answers = await Promise.all([finish, finish].map((outcome) => settler.settle({ fence: mine, outcome })))
  expect(answers.sort()).toEqual(['lease_lost', 'settled'])
  expect(await hf.timeline(mine.id)).toHaveLength(2)
})

test('a lost attempt and its successor that settle in one statement get an answer each', async ({
  given,
  store,
  hf,
}) => {
  const stale = await given.attemptThatWasLost()
  const [successor] = await given.claim({ sessionId: await given.session(), queue: stale.queue })
  const settler = settlerOf(store, stale.sessionId)
  const fences = [stale, heldFenceOf(successor as ClaimedRow)]
  const answers = await Promise.all(
    fences.map((fence) => settler.settle({ fence, outcome: { ...finish, output: String(fence.attempt) } })),
  )
  expect(answers).toEqual(['lease_lost', 'settled'])
  expect((await hf.get(stale.id))?.outputs).toEqual({ one: 2 })
})

test('a requeue for retry cannot overwrite a cancel', async ({ given, store, hf }) => {
  for (let round = 0; round < 20; round++) {
    const mine = await given.running()
    const [settled] = await Promise.all([
      settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: retry }),
      hf.cancel(mine.id),
    ])
    const types = (await hf.timeline(mine.id)).map(({ type }) => type)
    expect((await hf.get(mine.id))?.state).toBe('cancelled')
    expect(types.at(-1)).toBe('job.cancelled')
    expect(types.includes('job.retried')).toBe(settled === 'settled')
  }
})

test('a late success of a cancelled job is refused', async ({ given, store, hf }) => {
  const mine = await given.running()
  await hf.cancel(mine.id)
  expect(await settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: finish })).toBe('lease_lost')
  expect(await hf.get(mine.id)).toMatchObject({ state: 'cancelled', outputs: {} })
})

test('the output of a stage is readable as soon as it is committed, while the next stage waits', async ({
  given,
  store,
  hf,
}) => {
  const mine = await given.running()
  await settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: advance })
  expect(await hf.get(mine.id)).toMatchObject({ state: 'queued', stage: 1, outputs: { one: 'halfway' } })
})

test('an optional stage that fails leaves the job partial, and the earlier output readable', async ({
  given,
  store,
  hf,
}) => {
  const { id, queue } = await given.atSecondStage()
  const sessionId = await given.session()
  const [row] = await given.claim({ sessionId, queue })
  const settler = settlerOf(store, sessionId)
  await settler.settle({ fence: heldFenceOf(row as ClaimedRow), outcome: { ...fail, isOptional: true } })
  expect(await hf.get(id)).toMatchObject({ state: 'partial', outputs: { one: 'first' }, error: { code: 'permanent' } })
})

test('a retry counts one failure and waits in the database until its backoff has passed', async ({
  given,
  store,
  hf,
  query,
}) => {
  const mine = await given.running()
  await settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: retry })
  expect(await hf.get(mine.id)).toMatchObject({ state: 'queued', failures: 1, crashes: 0 })
  const [row] = await query(
    "select run_at > now() + interval '55 s' as waits from holdfast.job_status where finished_at is null",
  )
  expect(row).toEqual({ waits: true })
  expect(await given.claim({ sessionId: mine.sessionId, queue: mine.queue })).toEqual([])
})

test('a release costs no retry and no crash, and the job can be claimed at once', async ({ given, store, hf }) => {
  const mine = await given.running()
  await settlerOf(store, mine.sessionId).settle({ fence: mine, outcome: release })
  expect(await hf.get(mine.id)).toMatchObject({ state: 'queued', failures: 0, crashes: 0, attempt: 1 })
  expect(await given.claim({ sessionId: mine.sessionId, queue: mine.queue })).toMatchObject([{ attempt: 2 }])
})

test('failures and crashes are counted per stage', async ({ given, store, hf }) => {
  const mine = await given.running()
  await store.run(retryJobs, { fences: [mine], errors: ['{}'], delaysMs: [0] })
  const [second] = await given.claim({ sessionId: mine.sessionId, queue: mine.queue })
  expect(second).toMatchObject({ failures: 1, attempt: 2 })
  await settlerOf(store, mine.sessionId).settle({ fence: heldFenceOf(second as ClaimedRow), outcome: advance })
  expect(await hf.get(mine.id)).toMatchObject({ stage: 1, failures: 0, crashes: 0 })
})

test('many outcomes of every sort at once each get their own answer', async ({ given, store, query }) => {
  const sessionId = await given.session()
  const mine = await Promise.all(Array.from({ length: 60 }, () => given.running({ sessionId })))
  const lost = new Set(mine.filter((_, n) => n % 7 === 0).map(({ id }) => id))
  await queueAgain(query, [...lost])
  const settler = settlerOf(store, sessionId)
  const answers = await Promise.all(
    mine.map((fence, n) => settler.settle({ fence, outcome: everyOutcome[n % everyOutcome.length] as Outcome })),
  )
  expect(answers).toEqual(mine.map(({ id }) => (lost.has(id) ? 'lease_lost' : 'settled')))
})

test.for(everyOutcome)(
  'of a batch in which some attempts are lost, exactly the others are settled ($move)',
  async (outcome, { given, store, query }) => {
    const sessionId = await given.session()
    const mine = await Promise.all(Array.from({ length: 20 }, () => given.running({ sessionId })))
    const lost = mine.filter((_, n) => n === 0 || n % 6 === 5 || n === 19).map(({ id }) => id)
    await queueAgain(query, lost)
    const refused: { fences: Fence[]; write: string }[] = []
    const settler = settlerOf(store, sessionId, refused)
    const answers = await Promise.all(mine.map((fence) => settler.settle({ fence, outcome })))
    expect(answers).toEqual(mine.map(({ id }) => (lost.includes(id) ? 'lease_lost' : 'settled')))
    const told = await query<{ job_id: string }>(`select job_id from holdfast.event where type <> 'job.submitted'`)
    expect(told.map((event) => event.job_id).sort()).toEqual(
      mine
        .map(({ id }) => id as string)
        .filter((id) => !lost.some((one) => one === id))
        .sort(),
    )
    expect(refused.map(({ fences }) => fences.map(({ id }) => id))).toEqual([lost])
    expect(await query('select from holdfast.refusal')).toHaveLength(lost.length)
  },
)

test.for(everyOutcome)(
  'of attempts that are twice in one batch, each is settled once and refused once ($move)',
  async (outcome, { given, store, query }) => {
    const sessionId = await given.session()
    const [one, other, lost] = await Promise.all([1, 2, 3].map(() => given.running({ sessionId })))
    await queueAgain(query, [lost?.id as string])
    const batch = [one, other, one, lost, other] as Running[]
    const settler = settlerOf(store, sessionId)
    const answers = await Promise.all(batch.map((fence) => settler.settle({ fence, outcome })))
    const answersOf = (about: Running | undefined) => answers.filter((_, n) => batch[n] === about).sort()
    expect(answersOf(one)).toEqual(['lease_lost', 'settled'])
    expect(answersOf(other)).toEqual(['lease_lost', 'settled'])
    expect(answersOf(lost)).toEqual(['lease_lost'])
    expect(await query(`select from holdfast.event where type <> 'job.submitted'`)).toHaveLength(2)
  },
)

test('of a batch in which few attempts have an output, or a flaw, each keeps its own', async ({ given, store, hf }) => {
  const sessionId = await given.session()
  const mine = await Promise.all(Array.from({ length: 6 }, () => given.running({ sessionId })))
  const outputs = [null, '"a \\"b\\" \\\\ {c,d}"', null, 'null', '"NULL"', null]
  const settler = settlerOf(store, sessionId)
  await Promise.all(
    mine.map((fence, n) =>
      settler.settle({
        fence,
        outcome: { move: 'finish', stageName: `stage-${n}`, output: outputs[n] ?? null, hasFailedItems: n === 4 },
      }),
    ),
  )
  for (const [n, { id }] of mine.entries()) {
    const output = outputs[n]
    expect(await hf.get(id)).toMatchObject({
      state: n === 4 ? 'partial' : 'succeeded',
      outputs: output ? { [`stage-${n}`]: JSON.parse(output) } : {},
    })
  }
})

test('one outcome that the database refuses does not take the others with it', async ({ given, store, query, hf }) => {
  const sessionId = await given.session()
  const good = await Promise.all(Array.from({ length: 5 }, () => given.running({ sessionId })))
  const bad = await given.running({ sessionId })
  await query(`alter table holdfast.outcome add constraint no_poison check (job_id <> '${bad.id}')`)
  const settler = settlerOf(store, sessionId)
  const answers = await Promise.allSettled([...good, bad].map((fence) => settler.settle({ fence, outcome: finish })))
  expect(answers.map(({ status }) => status)).toEqual([...good.map(() => 'fulfilled'), 'rejected'])
  for (const { id } of good) expect(await hf.get(id)).toMatchObject({ state: 'succeeded' })
})
