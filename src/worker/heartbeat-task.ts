import type { ErrorCode } from '../errors/errors.ts'
import type { ClaimUnderWay } from './give-back.ts'
import type { Prefetched } from './prefetch-buffer.ts'
import type { SessionFacts } from './session.sql.ts'
import type { UnresponsiveHandler } from './vitals.ts'

/** What a heartbeat thread needs. */
export interface HeartbeatTask {
  url: string
  isPooled: boolean
  heartbeatMs: number
  /** How long the main thread has to abort its handlers. */
  abortMarginMs: number
  /** The session of a thread that died, to be resumed; null to open a new one. */
  sessionId: number | null
  /** Sessions that this process lost while it was alive, and of which the database may not know that. */
  lost: readonly number[]
  facts: SessionFacts
  /** The health of the process, written by its main thread. */
  vitals: SharedArrayBuffer
  /** Decides which thread gets a prefetched job. */
  handover: SharedArrayBuffer
  /** How long a prefetched job may wait while the main thread is blocked. */
  holdMs: number
}

/** What all threads of a worker have in common. */
export type CommonTask = Omit<HeartbeatTask, 'sessionId' | 'lost'>

/** What the main thread sends to a heartbeat thread. */
export type HeartbeatOrder =
  | 'stop'
  | { unresponsive: UnresponsiveHandler[] }
  | { prefetched: Prefetched }
  | { claiming: ClaimUnderWay }

/** What a heartbeat thread sends to the main thread. Times are from the monotonic clock, which all threads share. */
export type HeartbeatMessage =
  | { type: 'turned' }
  | { type: 'opened'; id: number; sentAtMs: number }
  | { type: 'confirmed'; id: number; sentAtMs: number }
  | { type: 'cut' }
  /** One connection had two backends. So there is a transaction pooler, and the session's lock is worthless. */
  | { type: 'pooled' }
  | { type: 'ended'; id: number }
  /** The database knows, or can't be told, that the process outlived this session. */
  | { type: 'outlived'; id: number }
  | { type: 'gaveBack'; count: number; blockedMs: number }
  | { type: 'error'; code: ErrorCode | null; message: string }
  | { type: 'closed' }

/** How long the thread waits for a connection. */
export const connectMs = 2_000

/**
 * How long the thread waits for an answer. If there is none by then, the server may have dropped our connection, and
 * the lock with it. The main thread has to learn that while it still has time to abort.
 */
export function patienceMs(task: CommonTask): number {
  return Math.max(500, task.facts.lostAfterMs - task.abortMarginMs - task.heartbeatMs)
}

/** The longest silence of a healthy thread, which sends a message each time before it waits. */
export function longestStepMs(task: CommonTask): number {
  return Math.max(connectMs, patienceMs(task), task.heartbeatMs, task.abortMarginMs)
}
