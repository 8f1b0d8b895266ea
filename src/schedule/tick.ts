import { messageOf } from '../errors/errors.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { runBatch } from '../transitions/batch.ts'
import { planStep } from './plan.ts'
import { type DueRow, dueSchedules, type Step, type TickedRow, tickSchedules } from './tick.sql.ts'
import { type FailedStep, failSchedules } from './unfinished.sql.ts'

/** How many schedules one statement decides. */
const batchSize = 200

/** What one round of ticks did. */
export interface Round {
  ticked: TickedRow[]
  /** Slots that could not be decided: they are tried again, and hold up no other. */
  failed: FailedStep[]
  /** How many schedules were due. */
  due: number
  /** Whether there may be more. */
  isFull: boolean
}

/** Which schedules to tick. */
export interface TickOptions {
  missedAfterMs: number
  /** Only those that have been due for that long. */
  lagMs: number
  only?: { tenant: string; name: string }
}

/** Decides the next slot of all schedules that are due, up to a batch. */
export async function tickDue(store: Store, { missedAfterMs, lagMs, only }: TickOptions): Promise<Round> {
  const due = await store.run(dueSchedules, { lagMs, limit: batchSize, only: only ?? null })
  const steps: Step[] = []
  const failed: FailedStep[] = []
  for (const row of due) {
    try {
      steps.push(planStep(row, missedAfterMs))
    } catch (error) {
      failed.push(failureOf(row, error))
    }
  }
  const told = await runBatch(store, { items: steps, run: tickSome })
  const ticked = told.flatMap((one) => (one.is === 'done' && one.answer ? [one.answer] : []))
  for (const [index, one] of told.entries()) {
    const { expectedAt, ...step } = steps[index] as Step
    if (one.is === 'refused') failed.push(failureOf({ ...step, next_at: expectedAt }, one.error))
  }
  if (failed.length > 0) await store.run(failSchedules, { steps: failed })
  // those that were locked or refused must not keep the others waiting; a round that moved nothing is the last
  return { ticked, failed, due: due.length, isFull: ticked.length > 0 }
}

async function tickSome(runner: Runner, steps: Step[]): Promise<(TickedRow | undefined)[]> {
  const rows = await runner.run(tickSchedules, { steps })
  const byName = new Map(rows.map((row) => [`${row.tenant}/${row.name}`, row]))
  return steps.map(({ tenant, name }) => byName.get(`${tenant}/${name}`))
}

function failureOf(
  { tenant, name, revision, next_at }: Pick<DueRow, 'tenant' | 'name' | 'revision' | 'next_at'>,
  error: unknown,
): FailedStep {
  return { tenant, name, revision, slotAt: next_at, problem: messageOf(error).slice(0, 1_000) }
}
