import { flagOf, limitOf, mustBeObject, placeOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { endedSessions, livingSessions, type SessionRow } from './overview.sql.ts'

/** A session of a worker process. */
export interface Session {
  id: number
  host: string
  pid: number
  version: string
  /** The process that supervises it, if one does. */
  supervisor: string | null
  startedAt: Date
  heartbeatAt: Date
  leaseUntil: Date
  endedAt: Date | null
  /** What ended it: the worker itself, or a rung of the recovery ladder. */
  endedBy: string | null
  /** The signal or exit code of its process, if a supervisor saw it. */
  exit: string | null
  /** The kinds that it serves, and the queue of each at the same index. */
  kinds: string[]
  queues: string[]
  concurrency: number
  /** How many attempts it holds. */
  running: number
  /** Whether it claims jobs; false while it drains. */
  isClaiming: boolean
  /** How many handlers were running at its last heartbeat, including those of jobs that it no longer holds. */
  busy: number
  /** How many of its handlers ignored their abort signal and are still running. */
  unresponsive: number
  /** How long a handler had blocked its event loop at its last heartbeat; 0 if it was not blocked. */
  blockedMs: number
  /** Whether it holds its lock on the server. */
  isLocked: boolean
  /** Whether it has not ended and its lease has not expired. */
  isLive: boolean
}

/** Which sessions to list. */
export interface SessionOptions {
  /** List sessions that have ended instead of live ones. */
  ended?: boolean
  /** Only sessions opened before this one: the last id of the previous page. */
  before?: number
  /** Maximum number of sessions, at most 1000. Default: 100. */
  limit?: number
}

/** A page of sessions, newest first. */
export async function sessionsOf(store: Runner, options: SessionOptions): Promise<Session[]> {
  mustBeObject('options of sessions', options)
  const { ended = false, before, limit = 100 } = options
  const page = { before: before === undefined ? null : placeOf('before', before), limit: limitOf(limit, 1000) }
  const rows = await store.run(flagOf('ended', ended) ? endedSessions : livingSessions, page)
  return rows.map(sessionOf)
}

function sessionOf(row: SessionRow): Session {
  return {
    id: row.id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    supervisor: row.supervisor,
    startedAt: row.started_at,
    heartbeatAt: row.heartbeat_at,
    leaseUntil: row.lease_until,
    endedAt: row.ended_at,
    endedBy: row.ended_by,
    exit: row.exit,
    kinds: row.kinds,
    queues: row.queues,
    concurrency: row.concurrency,
    running: row.running,
    isClaiming: row.is_claiming,
    busy: row.busy,
    unresponsive: row.unresponsive,
    blockedMs: row.blocked_ms,
    isLocked: row.is_locked,
    isLive: row.is_live,
  }
}
