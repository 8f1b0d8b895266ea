/**
 * Parked outcomes: those that the database refuses in every form, because a trigger or a constraint rejects each ending
 * of the job. The work is done and must not be repeated, so the job isn't run again, and its outcome is kept and
 * retried until the database accepts it.
 */
import { messageOf } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { isFileError, isPassing } from '../postgres/connection.ts'
import type { Runner } from '../postgres/store.ts'
import { atomically } from '../postgres/store.ts'
import { removeTwins } from '../transitions/held-rows.sql.ts'
import type { JobError, Outcome, Settlement } from './outcome.ts'
import { forgetParked, type ParkedRow, unparkJob } from './park.sql.ts'
import { moveKeyOf, writeOutcomes } from './write.ts'

/** What to write if the database refuses an outcome: a failure with the reason. */
export function failureOf(stageName: string, isOptional: boolean, error: unknown): Outcome {
  const message = `Postgres refused the outcome of stage ${stageName}: ${messageOf(error)}`
  return { move: 'fail', error: { code: 'output_invalid', message }, isOptional }
}

/** What to write if even that is refused: the job is parked with its original outcome. */
export function parkedOf(outcome: Outcome, error: unknown): Outcome {
  const message = `Postgres refuses every outcome of this job: ${messageOf(error)}`
  return { move: 'retry', error: { code: 'output_invalid', message }, delayMs: 0, parked: outcome }
}

/** The result of a retry: the outcome was written, or is no longer needed. */
export type Unparked = 'written' | 'forgotten'

const bounds = { lockMs: 500 }
/** How long a parked outcome waits for a file that can't be read or written, before the job fails. */
const longestFileErrorMs = 600_000

/** Writes a parked outcome or, if that is refused, a failure. If both are refused, throws and changes nothing. */
export async function unpark(store: Runner, row: ParkedRow): Promise<Unparked> {
  const outcome = JSON.parse(row.outcome) as Outcome
  try {
    return await atomically(store, (runner) => writeParked(runner, row, outcome), bounds)
  } catch (error) {
    // a broken connection, a locked row or a disk that fails for a while says nothing about the outcome
    const isTemporary = isPassing(error) || (isFileError(error) && row.lost_ms < longestFileErrorMs)
    if (outcome.move === 'fail' || isTemporary) throw error
    const refusal: JobError = { code: 'output_invalid', message: row.reason }
    const fail: Outcome = { move: 'fail', error: refusal, isOptional: false }
    return atomically(store, (runner) => writeParked(runner, row, fail), bounds)
  }
}

async function writeParked(runner: Runner, row: ParkedRow, outcome: Outcome): Promise<Unparked> {
  const { job_id: id, attempt, session_id: sessionId } = row
  const [running] = await runner.run(unparkJob, { id, attempt, sessionId })
  await runner.run(forgetParked, { id, attempt })
  if (!running) return 'forgotten'
  const fence = { id: id as JobId, attempt, sessionId, leaseId: running.lease_id, slot: 0, leaseSize: 1 }
  const settlement: Settlement = { fence, outcome }
  // it may have been refused because a restore was incomplete and left rows of the job in two tables
  await runner.run(removeTwins, { ids: [id] })
  await writeOutcomes(runner, { move: moveKeyOf(outcome), same: [settlement] })
  return 'written'
}
