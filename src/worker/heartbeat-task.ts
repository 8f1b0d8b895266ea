import type { ErrorCode } from '../errors/errors.ts'
import type { ClaimUnderWay } from './give-back.ts'
import type { Prefetched } from './prefetch.ts'
import type { SessionFacts } from './session.sql.ts'
import type { UnresponsiveHandler } from './vitals.ts'

/** What a heartbeat thread is started with. */
export interface HeartbeatTask {
  url: string
  isPooled: boolean
  heartbeatMs: number
  /** How long the main thread may take to abort its handlers. */
  abortMarginMs: number
  /** The session of the thread that died before this one; null to open one. */
  sessionId: number | null
  facts: SessionFacts
  /** How the process is, written by its main thread. */
  vitals: SharedArrayBuffer
  /** Who may have a prefetched job. */
  handover: SharedArrayBuffer
  /** How long a prefetched job may wait for a main thread that is blocked. */
  holdMs: number
}

/** What a heartbeat thread is told. */
export type HeartbeatOrder =
  | 'stop'
  | { unresponsive: UnresponsiveHandler[] }
  | { prefetched: Prefetched }
  | { claiming: ClaimUnderWay }

/** What a heartbeat thread tells. Times are of the monotonic clock that all threads share. */
export type HeartbeatNews =
  | { news: 'turned' }
  | { news: 'opened'; id: number; sentAtMs: number }
  | { news: 'confirmed'; id: number; sentAtMs: number }
  | { news: 'cut' }
  /** One connection had two backends: there is a transaction pooler, so the lock is worth nothing. */
  | { news: 'pooled' }
  | { news: 'ended'; id: number }
  | { news: 'gaveBack'; count: number; blockedMs: number }
  | { news: 'trouble'; code: ErrorCode | null; message: string }
  | { news: 'closed' }

/** How long the thread waits for a connection. */
export const connectMs = 2_000

/**
 * How long the thread waits for an answer. One that is still out by then may mean that the server has dropped us, and the lock with us,
 * without our seeing it: the main thread has to hear of it while it still has the time to abort.
 */
export function patienceMs(task: Omit<HeartbeatTask, 'sessionId'>): number {
  return Math.max(500, task.facts.lostAfterMs - task.abortMarginMs - task.heartbeatMs)
}

/** The longest that a healthy thread is silent: it tells each time before it waits. */
export function longestStepMs(task: Omit<HeartbeatTask, 'sessionId'>): number {
  return Math.max(connectMs, patienceMs(task), task.heartbeatMs, task.abortMarginMs)
}
