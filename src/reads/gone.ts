import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { Runner } from '../postgres/store.ts'
import { findGone } from './gone.sql.ts'
import { stateOf } from './job.sql.ts'

/** The error for a removed job, if its idempotency key is still known; otherwise undefined. */
export async function goneError(store: Runner, id: JobId, tenant: string | null): Promise<HoldfastError | undefined> {
  const [gone] = await store.run(findGone, { id, tenant })
  if (!gone) return undefined
  const endedAt = gone.ended_at.toISOString()
  return new HoldfastError(
    'job_gone',
    `Job ${id} ended as ${gone.state} at ${endedAt}, and was removed when its retention period expired.`,
    { details: { state: gone.state, endedAt } },
  )
}

/** The error for a job that does not exist, or was removed. */
export async function noJob(store: Runner, id: JobId, tenant: string | null): Promise<HoldfastError> {
  return (await goneError(store, id, tenant)) ?? new HoldfastError('job_not_found', `There is no job ${id}.`)
}

/**
 * The error for a move that changed nothing: the job does not exist, or its state does not allow the move. Only to be called after the move:
 * before it, the answer might change.
 */
export async function whyNothing(
  store: Runner,
  id: JobId,
  move: 'cancel' | 'redo',
  tenant: string | null,
): Promise<HoldfastError> {
  const [now] = await store.run(stateOf, { ids: [id], tenant })
  if (!now) return noJob(store, id, tenant)
  return new HoldfastError(
    'move_illegal',
    `Job ${id} is ${now.state}; it cannot be ${move === 'cancel' ? 'cancelled' : 'redone'} now.`,
    { details: { state: now.state } },
  )
}
