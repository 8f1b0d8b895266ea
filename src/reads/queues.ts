import { mustBeObject, queueOf, textOf } from '../job/validate-argument.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { pauseQueue } from './job.sql.ts'
import { listQueues, listQueuesOfTenant } from './overview.sql.ts'

/** A queue, and what is in it. */
export interface Queue {
  name: string
  /** Whether it is paused, so that its jobs are not claimed. */
  isPaused: boolean
  pausedAt: Date | null
  /** Who paused it and why, if that was given. */
  pausedBy: string | null
  pauseReason: string | null
  /** Jobs that are due. */
  queued: number
  /** Jobs that are not due yet. */
  scheduled: number
  running: number
  /** Jobs that wait for their items. */
  waiting: number
  /** How long the oldest due job has been due; null if none is. */
  oldestDueMs: number | null
  /** Live sessions that serve it. */
  workers: number
  /** Whether there were too many jobs to count: the numbers are then lower bounds. */
  isCapped: boolean
}

/** Who pauses or resumes a queue and why; `why` and `top` show it. */
export interface PauseOptions {
  /** Who pauses or resumes it. */
  by?: string
  /** Why it is paused or resumed. */
  reason?: string
}

/** Pauses a queue. */
export async function pause(store: Store, name: string, options: PauseOptions): Promise<void> {
  mustBeObject('options of pauseQueue', options)
  const [by, reason] = [textOf('by', options.by), textOf('reason', options.reason)]
  await store.contend(pauseQueue, { name: queueOf(name), isPaused: true, by, reason })
}

/** Resumes a queue. */
export async function resume(store: Store, name: string, options: PauseOptions): Promise<void> {
  mustBeObject('options of resumeQueue', options)
  const [by, reason] = [textOf('by', options.by), textOf('reason', options.reason)]
  await store.contend(pauseQueue, { name: queueOf(name), isPaused: false, by, reason })
}

/** How many jobs to count in each queue and state. */
const mostCounted = 100_000

/** All queues that contain jobs, are served, or were ever paused. With a tenant, only its jobs are counted. */
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
    // what operators write is not for tenants
    pausedBy: tenant === null ? paused_by : null,
    pauseReason: tenant === null ? pause_reason : null,
    oldestDueMs: oldest_due_ms,
    isCapped: is_capped,
  }))
}
