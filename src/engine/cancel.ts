import { barriersOf } from '../fan-out/fan-out.sql.ts'
import type { JobId } from '../job/id.ts'
import { idOf, textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import { whyNothing } from '../reads/gone.ts'
import { stopBarriers } from '../settle/fan-out.sql.ts'
import type { Canceller } from '../submit/cancel.ts'
import { redoJobs } from '../submit/redo.sql.ts'
import { cancelJobs } from '../submit/submit.sql.ts'
import type { Listeners } from './listeners.ts'
import type { OnEnded } from './work.ts'

/** Options of a cancel. */
interface CancelOptions {
  reason?: string
  by?: string
  tenant?: string
}

/** Cancels a job and its items. Throws job_not_found or move_illegal. */
export async function cancelJob(
  {
    store,
    canceller,
    listeners,
    onEnded,
  }: { store: Store; canceller: Canceller; listeners: Listeners; onEnded: OnEnded },
  id: string,
  options: CancelOptions = {},
): Promise<void> {
  const jobId = idOf(id)
  const tenant = textOf('tenant', options.tenant)
  const [reason, by] = [textOf('reason', options.reason), textOf('by', options.by)]
  const cancelled = await canceller.cancel({ id: jobId, tenant, reason, by })
  if (!cancelled) throw await whyNothing(store, jobId, 'cancel', tenant)
  onEnded(jobId)
  listeners.tell('cancel', { id: jobId, kind: null, stage: null, attempt: null, error: null })
  if (cancelled.skipped) await store.contend(cancelJobs, { ids: cancelled.skipped, tenant, reason, by })
  if (cancelled.is_cut) await cancelRest(store, jobId, reason)
}

/**
 * Cancels the remaining items of a cancelled job that has more items than one statement cancels. If this is interrupted, the reaper finishes
 * it, because the job of these items has ended.
 */
async function cancelRest(store: Store, jobId: JobId, reason: string | null): Promise<void> {
  const ids = (await store.run(barriersOf, { jobId })).map(({ id }) => id)
  const stop = () =>
    store.contend(stopBarriers, { ids, reason: reason ?? 'The job that this item belongs to was cancelled.' })
  while ((await stop())[0]?.is_cut);
}

/** Re-runs a failed, partial or cancelled job. Throws job_not_found or move_illegal. */
export async function redoJob(
  store: Store,
  id: string,
  options: { from?: 'failed' | 'start'; by?: string; tenant?: string } = {},
): Promise<void> {
  const jobId = idOf(id)
  const [tenant, by] = [textOf('tenant', options.tenant), textOf('by', options.by)]
  const [redone] = await store.contend(redoJobs, { ids: [jobId], tenant, isFromStart: options.from === 'start', by })
  if (!redone) throw await whyNothing(store, jobId, 'redo', tenant)
}
