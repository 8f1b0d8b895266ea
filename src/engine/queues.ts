import type { Runner } from '../store/store.ts'
import { mustBeObject, textOf } from './given.ts'
import { listQueues } from './overview.sql.ts'

/** A queue, with what is in it. */
export interface Queue {
  name: string
  /** Whether its jobs are not claimed at present. */
  isPaused: boolean
  pausedAt: Date | null
  /** Jobs that could run this moment. */
  queued: number
  /** Jobs that wait for their time. */
  scheduled: number
  running: number
  /** Jobs that wait for their items. */
  waiting: number
  /** How long the first of the due jobs has been due; null if none is. */
  oldestDueMs: number | null
  /** Living sessions that serve it. */
  workers: number
  /** Whether there were too many jobs to count: the numbers are then the least that there are. */
  isCapped: boolean
}

/** How many jobs are counted in each queue and state. */
const mostCounted = 100_000

/** All queues that hold jobs, are served, or were ever paused. With a tenant, only its jobs are counted. */
export async function queuesOf(store: Runner, options: { tenant?: string }): Promise<Queue[]> {
  mustBeObject('options of queues', options)
  const rows = await store.run(listQueues, { tenant: textOf('tenant', options.tenant), most: mostCounted })
  return rows.map(({ paused_at, oldest_due_ms, is_capped, ...row }) => ({
    ...row,
    isPaused: paused_at !== null,
    pausedAt: paused_at,
    oldestDueMs: oldest_due_ms,
    isCapped: is_capped,
  }))
}
