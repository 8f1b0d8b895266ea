import { setImmediate as breath } from 'node:timers/promises'
import { messageOf } from '../errors/errors.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { runBatch, type Told } from '../transitions/batch.ts'
import { type Chosen, planStep } from './plan.ts'
import { type Releasable, releasableSchedules, releaseBuffered } from './release.sql.ts'
import { type DueRow, dueSchedules, type Step, type TickedRow, tickSchedules } from './tick.sql.ts'
import { type FailedStep, failSchedules } from './unfinished.sql.ts'

/** How many schedules one statement decides. */
const batchSize = 200
/** How long slots are computed before other work of the process gets its turn, and in one round. */
const spellMs = 10
const mostPlanMs = 250

/** What one round of ticks did. */
export interface Round {
  ticked: TickedRow[]
  /** Slots that could not be decided: they are tried again, and hold up no other. */
  failed: Failed[]
  /** How many schedules were due. */
  due: number
  /** Whether there may be more. */
  isFull: boolean
}

/** A schedule whose slot could not be decided. */
export type Failed = Pick<FailedStep, 'tenant' | 'name' | 'problem'>

/** Which schedules to tick. */
export interface TickOptions {
  missedAfterMs: number
  /** Only those that have been due for at least that long. */
  lagMs: number
  /** Only those that have been due for less than that. */
  withinMs?: number
  only?: { tenant: string; name: string }
}

/** Decides the next slot of all schedules that are due, up to a batch. */
export async function tickDue(store: Store, options: TickOptions): Promise<Round> {
  const { missedAfterMs, lagMs, withinMs = null, only = null } = options
  const due = await store.run(dueSchedules, { lagMs, withinMs, limit: batchSize, only })
  const { steps, failed } = await planAll(due, missedAfterMs, chosenOf(store))
  const told = await runBatch(store, { items: steps, run: tickSome })
  for (const [index, one] of told.entries()) {
    const { expectedAt, ...step } = steps[index] as Step
    if (one.is !== 'done') failed.push(failureOf({ ...step, next_at: expectedAt }, one.error, one.is === 'held'))
  }
  await runBatch(store, { items: failed, run: failSome })
  const ticked = answersOf(told)
  // those that were locked or refused must not keep the others waiting; a round that moved nothing is the last
  return { ticked, failed, due: due.length, isFull: ticked.length > 0 }
}

/** Decides all slots of one schedule that are due. */
export async function tickOne(
  store: Store,
  missedAfterMs: number,
  only: { tenant: string; name: string },
): Promise<void> {
  while ((await tickDue(store, { missedAfterMs, lagMs: 0, only })).isFull);
}

/** After a long outage, each schedule may have a thousand slots to count. What there is no time for is left to the next round. */
async function planAll(due: readonly DueRow[], missedAfterMs: number, chosen: Chosen) {
  const steps: Step[] = []
  const failed: FailedStep[] = []
  const endMs = performance.now() + mostPlanMs
  let spellEndMs = performance.now() + spellMs
  for (const row of due) {
    try {
      steps.push(planStep(row, missedAfterMs, chosen))
    } catch (error) {
      failed.push(failureOf(row, error, false))
    }
    if (performance.now() < spellEndMs) continue
    if (performance.now() >= endMs) break
    await breath()
    spellEndMs = performance.now() + spellMs
  }
  return { steps, failed }
}

const chosenSlots = new WeakMap<Store, Chosen>()

function chosenOf(store: Store): Chosen {
  const known = chosenSlots.get(store) ?? new Map()
  chosenSlots.set(store, known)
  return known
}

async function tickSome(runner: Runner, steps: Step[]): Promise<(TickedRow | undefined)[]> {
  return inOrder(steps, await runner.run(tickSchedules, { steps }))
}

async function failSome(runner: Runner, steps: FailedStep[]): Promise<undefined[]> {
  await runner.run(failSchedules, { steps })
  return steps.map(() => undefined)
}

/** Submits buffered slots whose turn has come, up to a batch. */
export async function releaseDue(store: Store): Promise<Round> {
  const due = await store.run(releasableSchedules, { limit: batchSize })
  const told = await runBatch(store, { items: due, run: releaseSome })
  const failed = told.flatMap((one, index) =>
    one.is === 'done' ? [] : [failureOf(due[index] as Releasable, one.error, one.is === 'held')],
  )
  // the slots after it wait for it, and must not be tried again and again
  await runBatch(store, { items: failed.filter(({ slotAt }) => slotAt !== null), run: failSome })
  const ticked = answersOf(told)
  return { ticked, failed, due: due.length, isFull: due.length === batchSize && ticked.length > 0 }
}

async function releaseSome(runner: Runner, of: Releasable[]): Promise<(TickedRow | undefined)[]> {
  return inOrder(of, await runner.run(releaseBuffered, { of }))
}

/** The answer for each schedule; none if it was decided, changed or locked by another. */
function inOrder(
  asked: readonly { tenant: string; name: string }[],
  rows: readonly TickedRow[],
): (TickedRow | undefined)[] {
  const byName = new Map(rows.map((row) => [`${row.tenant}/${row.name}`, row]))
  return asked.map(({ tenant, name }) => byName.get(`${tenant}/${name}`))
}

function answersOf(told: readonly Told<TickedRow | undefined>[]): TickedRow[] {
  return told.flatMap((one) => (one.is === 'done' && one.answer ? [one.answer] : []))
}

function failureOf(
  { tenant, name, revision, next_at }: Pick<Releasable, 'tenant' | 'name' | 'revision' | 'next_at'>,
  error: unknown,
  isHeld: boolean,
): FailedStep {
  return { tenant, name, revision, slotAt: next_at, problem: messageOf(error).slice(0, 1_000), isHeld }
}
