import fc from 'fast-check'
import type { HeldFence, JobId } from '#holdfast/job/id'
import { allMoves, announces, can, isFinal, leadsTo, type MoveName, moves, type State } from '#holdfast/job/machine'
import type { Store } from '#holdfast/postgres/store'
import { getJob } from '#holdfast/reads/job.sql'
import {
  advanceJobs,
  failJobs,
  failOptional,
  finishJobs,
  type Moved,
  releaseJobs,
  retryJobs,
} from '#holdfast/settle/settle.sql'
import { snoozeJobs } from '#holdfast/settle/snooze.sql'
import { redoJobs } from '#holdfast/submit/redo.sql'
import { cancelJobs } from '#holdfast/submit/submit.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { expect, test } from './fixtures.ts'
import type { Given } from './given.ts'

/** One step of a walk: a move, perhaps to the second of its ends, perhaps with the fence of an attempt long gone. */
interface Step {
  move: MoveName
  to: State
  age: number
}

/** Where the law says that the job is. */
interface Model {
  state: State
  attempt: number
  stage: number
  failures: number
  events: string[]
}

/** The moves that this room's statements make; revive, quarantine, fan-out and join are made by others. */
const walked = [
  'claim',
  'advance',
  'finish',
  'retry',
  'fail',
  'release',
  'snooze',
  'cancel',
  'redo',
] as const satisfies MoveName[]

const steps = fc.array(
  fc.record({
    move: fc.constantFrom(...walked),
    // a claim begins every attempt, so it comes up more often than chance would have it
    isClaim: fc.boolean(),
    end: fc.nat({ max: 1 }),
    age: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  }),
  { minLength: 1, maxLength: 30 },
)

function stepOf({ move, isClaim, end, age }: { move: MoveName; isClaim: boolean; end: number; age: number }): Step {
  const name = isClaim ? 'claim' : move
  // an attempt that finishes is succeeded: partial is the end of a failing optional stage
  const ends = name === 'finish' ? (['succeeded'] as const) : leadsTo(name)
  return { move: name, to: ends[end % ends.length] as State, age }
}

/** What the machine says about a step. */
function judged(model: Model, { move, to, age }: Step): Model {
  const isFenceGood = !moves[move].isFenced || age === 0
  if (!can(move, model.state) || !isFenceGood) return model
  const event = announces(move)
  const isNewStage = move === 'advance' || move === 'redo'
  return {
    state: to,
    attempt: move === 'claim' ? model.attempt + 1 : model.attempt,
    stage: move === 'advance' ? model.stage + 1 : model.stage,
    failures: isNewStage ? 0 : move === 'retry' || move === 'fail' ? model.failures + 1 : model.failures,
    events: event ? [...model.events, event] : model.events,
  }
}

/** How many jobs a settle has moved: it answers one row, whatever it has found. */
async function countOf(settling: Promise<Moved[]>): Promise<number> {
  const rows = await settling
  expect(rows).toHaveLength(1)
  return rows[0]?.count ?? 0
}

/** Makes the step in the database, by the product's own statement; says whether it was carried out. */
async function made(
  store: Store,
  given: Given,
  job: { id: JobId; queue: string; sessionId: number; fences: HeldFence[] },
  step: Step,
  attempt: number,
) {
  const { id, queue, sessionId } = job
  const attemptBefore = attempt - step.age
  const nowhere = { id, attempt: attemptBefore, sessionId, leaseId: 1, slot: 0, leaseSize: 1 }
  const fences = [job.fences.find((fence) => fence.attempt === attemptBefore) ?? nowhere]
  const ended = { fences, outputs: ['1'], stageNames: ['any'] }
  const erred = { fences, errors: ['{"code":"permanent"}'] }
  const chosen = { ids: [id], tenant: null }
  const count = await {
    claim: async () => {
      const claimed = await given.claim({ sessionId, queue, stageCount: 99 })
      job.fences.push(...claimed.map(heldFenceOf))
      return claimed.length
    },
    advance: () => countOf(store.run(advanceJobs, ended)),
    finish: () => countOf(store.run(finishJobs, ended)),
    retry: () => countOf(store.run(retryJobs, { ...erred, delaysMs: [0] })),
    fail: () => countOf(store.run(step.to === 'partial' ? failOptional : failJobs, erred)),
    release: () => countOf(store.run(releaseJobs, { fences })),
    snooze: () => countOf(store.run(snoozeJobs, { fences, delaysMs: [0] })),
    cancel: async () => (await store.run(cancelJobs, { ...chosen, reason: null })).length,
    redo: async () => (await store.run(redoJobs, { ...chosen, isFromStart: false })).length,
  }[step.move as (typeof walked)[number]]()
  return count === 1
}

test('on every random walk the database is where the machine says, and makes no move that the machine forbids', async ({
  store,
  given,
  query,
}) => {
  const sessionId = await given.session({ leaseMs: 3_600_000 })
  const seen = new Set<MoveName>()
  await fc.assert(
    fc.asyncProperty(steps, async (given_) => {
      const job = { ...(await given.queued()), sessionId, fences: [] }
      let model: Model = { state: 'queued', attempt: 0, stage: 0, failures: 0, events: ['job.submitted'] }
      for (const step of given_.map(stepOf)) {
        const next = judged(model, step)
        expect(await made(store, given, job, step, model.attempt), `${step.move} from ${model.state}`).toBe(
          next !== model,
        )
        if (isFinal(model.state) && next !== model) expect(moves[step.move].by).toBe('client')
        if (next !== model) seen.add(step.move)
        model = next
        const [row] = await store.run(getJob, { id: job.id, tenant: null })
        const { state, attempt, stage, failures } = row as unknown as Model
        const events = await query<{ type: string }>('select type from holdfast.event where job_id = $1 order by seq', [
          job.id,
        ])
        expect({ state, attempt, stage, failures, events: events.map(({ type }) => type) }).toEqual(model)
      }
    }),
    { numRuns: 60 },
  )
  expect(allMoves.filter((move) => seen.has(move))).toEqual(
    allMoves.filter((move) => walked.some((name) => name === move)),
  )
})

test('when every move is tried at once on one running job, the law lets exactly one end it', async ({
  store,
  given,
  query,
}) => {
  for (let round = 0; round < 25; round++) {
    const running = await given.running()
    const { id } = running
    const fences = [running]
    const moved = await Promise.all([
      store.run(finishJobs, { fences, outputs: ['1'], stageNames: ['any'] }),
      store.run(failJobs, { fences, errors: ['{}'] }),
      store.run(retryJobs, { fences, errors: ['{}'], delaysMs: [60_000] }),
      store.run(releaseJobs, { fences }),
      store.run(advanceJobs, { fences, outputs: ['1'], stageNames: ['any'] }),
    ])
    expect(moved.map(([answer]) => answer?.count).sort()).toEqual([0, 0, 0, 0, 1])
    const events = await query('select type from holdfast.event where job_id = $1', [id])
    expect(events).toHaveLength(2)
  }
})
