import { barriersOf, itemsOf, stragglersOf } from '../fan-out/fan-out.sql.ts'
import { isComplete } from '../job/fan-out.ts'
import { highestId, type JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import type { Runner } from '../postgres/store.ts'

/** The progress of a fan-out. It is counted in the same statement that settles an item, so it is always up to date and never decreases. */
export interface FanOutProgress {
  stage: number
  /** Null until all items are added. */
  total: number | null
  succeeded: number
  failed: number
  cancelled: number
  running: number
  queued: number
  /** Whether all items have ended; `unknown` until their number is known. */
  isComplete: true | false | 'unknown'
  /** Items per second that have ended since the fan-out began. */
  perSecond: number
  /** The time until the last item ends at this rate; null if it is unknown. */
  etaMs: number | null
  ageMs: number
}

/** One item of a fan-out. */
export interface Item {
  /** The id of the item, which is a job itself. */
  id: JobId
  key: string
  position: number
  stage: number
  state: State
  attempt: number
  error: { code: string; message: string } | null
  /** Since when it has been in its state, as far as known. */
  since: Date
}

/** The item that a page starts after. Pass the whole item, because two may have the same position. */
export type AfterItem = Pick<Item, 'stage' | 'position'> & Partial<Pick<Item, 'id'>>

/** An item that is running, or waits for items of its own. */
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
  /** When it counts as hung. */
  deadlineAt: Date | null
}

/** The items of a job that have been running longest, by their deadlines. */
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
  // without its id, all items at its position count as seen
  const { stage = 0, position = -1, id = highestId } = options.after ?? {}
  const { state = null, limit } = options
  const rows = await store.run(itemsOf, { jobId, state, stage, position, id, limit })
  return rows.map((row) => ({ ...row, id: row.id as JobId, state: row.state as State }))
}
