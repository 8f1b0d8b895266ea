import type { Runner } from '../store/store.ts'
import { mustBeObject, queueOf, textOf } from './given.ts'
import { listQueues, listQueuesOfTenant } from './overview.sql.ts'
import { pauseQueue } from './read.sql.ts'

/** A queue, with what is in it. */
export interface Queue {
  name: string
  /** Whether its jobs are not claimed at present. */
  isPaused: boolean
  pausedAt: Date | null
  /** Who paused it and why, if they said so. */
  pausedBy: string | null
  pauseReason: string | null
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

/** Who pauses a queue and why: `why` and `top` show it to whoever wonders. */
export interface PauseOptions {
  by?: string
  reason?: string
}

/** Stops the claiming of a queue's jobs. */
export async function pause(store: Runner, name: string, options: PauseOptions): Promise<void> {
  mustBeObject('options of pauseQueue', options)
  const [by, reason] = [textOf('by', options.by), textOf('reason', options.reason)]
  await store.run(pauseQueue, { name: queueOf(name), isPaused: true, by, reason })
}

/** Lets a queue's jobs be claimed again. */
export async function resume(store: Runner, name: string, options: { by?: string }): Promise<void> {
  mustBeObject('options of resumeQueue', options)
  await store.run(pauseQueue, { name: queueOf(name), isPaused: false, by: textOf('by', options.by) })
}

/** How many jobs are counted in each queue and state. */
const mostCounted = 100_000

/** All queues that hold jobs, are served, or were ever paused. With a tenant, only its jobs are counted. */
export async function queuesOf(store: Runner, options: { tenant?: string }): Promise<Queue[]> {
  mustBeObject('options of queues', options)
  const tenant = textOf('tenant', options.tenant)
  const most = mostCounted
  const isIndexed = tenant !== null && tenant !== 'default'
  const rows = isIndexed
    ? await store.run(listQueuesOfTenant, { tenant, most })
    : await store.run(listQueues, { tenant, most })
  return rows.map(({ paused_at, paused_by, pause_reason, oldest_due_ms, is_capped, ...row }) => ({
    ...row,
    isPaused: paused_at !== null,
    pausedAt: paused_at,
    // what operators tell each other is not for tenants
    pausedBy: tenant === null ? paused_by : null,
    pauseReason: tenant === null ? pause_reason : null,
    oldestDueMs: oldest_due_ms,
    isCapped: is_capped,
  }))
}
