/**
 * Outcomes that the database refuses in every form, because a trigger or a constraint speaks against each ending of the job. The work is
 * done and must not be done again, so the job waits without being run, and its outcome waits with it until the database accepts it.
 */
import { messageOf } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { isPassing } from '../store/connection.ts'
import { removeTwins } from '../store/held.sql.ts'
import type { Runner } from '../store/store.ts'
import { within } from '../store/store.ts'
import type { JobError, Outcome, Settlement } from './outcome.ts'
import { forgetParked, type ParkedRow, unparkJob } from './park.sql.ts'
import { moveKeyOf, writeOutcomes } from './write.ts'

/** What is to be written of an attempt whose outcome the database refused: that it failed, for that reason. */
export function failureOf(stageName: string, isOptional: boolean, error: unknown): Outcome {
  const message = `Postgres refused the outcome of stage ${stageName}: ${messageOf(error)}`
  return { move: 'fail', error: { code: 'output_invalid', message }, isOptional }
}

/** What is to be written if even that is refused: the job waits with the outcome that it came to. */
export function parkedOf(outcome: Outcome, error: unknown): Outcome {
  const message = `Postgres refuses every ending of this job: ${messageOf(error)}`
  return { move: 'retry', error: { code: 'output_invalid', message }, delayMs: 0, parked: outcome }
}

/** How a parked outcome was tried again. */
export type Unparked = 'written' | 'forgotten'

const bounds = { lockMs: 500 }

/** Writes a parked outcome, or if that is refused, a failure with the reason. Throws if that is refused too, and then nothing has changed. */
export async function unpark(store: Runner, row: ParkedRow): Promise<Unparked> {
  const outcome = JSON.parse(row.outcome) as Outcome
  try {
    return await within(store, (runner) => writeParked(runner, row, outcome), bounds)
  } catch (error) {
    // a broken wire, or a row that somebody holds, says nothing against the outcome
    if (outcome.move === 'fail' || isPassing(error)) throw error
    const told: JobError = { code: 'output_invalid', message: row.reason }
    const fail: Outcome = { move: 'fail', error: told, isOptional: false }
    return within(store, (runner) => writeParked(runner, row, fail), bounds)
  }
}

async function writeParked(runner: Runner, row: ParkedRow, outcome: Outcome): Promise<Unparked> {
  const { job_id: id, attempt, session_id: sessionId } = row
  const [running] = await runner.run(unparkJob, { id, attempt, sessionId })
  await runner.run(forgetParked, { id, attempt })
  if (!running) return 'forgotten'
  const fence = { id: id as JobId, attempt, sessionId, leaseId: running.lease_id, slot: 0, leaseSize: 1 }
  const settlement: Settlement = { fence, outcome }
  // half a restore may be why it was refused
  await runner.run(removeTwins, { ids: [id] })
  await writeOutcomes(runner, { move: moveKeyOf(outcome), same: [settlement] })
  return 'written'
}
