import { barriersOf, itemsOf, stragglersOf } from '../barrier/barrier.sql.ts'
import { isComplete } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import type { Runner } from '../store/store.ts'

/** How far a fan-out is. Counted in one atomic write with each item's settle, so it is never behind and never goes down. */
export interface FanOutProgress {
  stage: number
  /** Null until all items are there. */
  total: number | null
  succeeded: number
  failed: number
  cancelled: number
  running: number
  queued: number
  /** Whether all items have ended; `unknown` until their number is known. */
  isComplete: true | false | 'unknown'
  /** Items that ended per second since the fan-out began. */
  perSecond: number
  /** When the last one will have ended if they go on like this; null if nobody can say. */
  etaMs: number | null
  ageMs: number
}

/** One item of a fan-out. */
export interface Item {
  id: JobId
  key: string
  position: number
  stage: number
  state: State
  attempt: number
  error: { code: string; message: string } | null
  /** Since when it is in its state, as far as that is known. */
  since: Date
}

/** Where a page of items begins: after that one. Pass an item whole, for two may have the same position. */
export type AfterItem = Pick<Item, 'stage' | 'position'> & Partial<Pick<Item, 'id'>>

/** An item that is at work, or waits for items of its own. */
export interface Straggler {
  id: JobId
  key: string
  position: number
  stage: number
  state: State
  attempt: number
  /** How many workers it has lost. */
  crashes: number
  sessionId: number | null
  /** When it is taken for hung. */
  deadlineAt: Date | null
}

/** The items of a job that have been at work the longest, by their deadlines. */
export async function listStragglers(store: Runner, jobId: JobId, limit: number): Promise<Straggler[]> {
  const rows = await store.run(stragglersOf, { jobId, limit })
  return rows.map(({ session_id, deadline_at, ...row }) => ({
    ...row,
    id: row.id as JobId,
    state: row.state as State,
    sessionId: session_id,
    deadlineAt: deadline_at,
  }))
}

/** The fan-outs of a job, by stage. */
export async function fanOutsOf(store: Runner, jobId: JobId): Promise<FanOutProgress[]> {
  const rows = await store.run(barriersOf, { jobId })
  return rows.map((row) => {
    const { stage, total, succeeded, failed, cancelled, running, queued, age_ms } = row
    const settled = succeeded + failed + cancelled
    const perSecond = age_ms > 0 ? (settled * 1000) / age_ms : 0
    const left = total === null ? null : Math.max(0, total - settled)
    const etaMs = left === 0 ? 0 : left === null || perSecond === 0 ? null : Math.round((left * 1000) / perSecond)
    return {
      stage,
      total,
      succeeded,
      failed,
      cancelled,
      running,
      queued,
      isComplete: isComplete({ total, settled }),
      perSecond,
      etaMs,
      ageMs: age_ms,
    }
  })
}

/** A page of a job's items, by stage and position. */
export async function listItems(
  store: Runner,
  jobId: JobId,
  options: { state?: State; after?: AfterItem; limit: number },
): Promise<Item[]> {
  // without its id, whatever shares the position counts as seen
  const { stage = 0, position = -1, id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' } = options.after ?? {}
  const { state = null, limit } = options
  const rows = await store.run(itemsOf, { jobId, state, stage, position, id, limit })
  return rows.map((row) => ({ ...row, id: row.id as JobId, state: row.state as State }))
}
