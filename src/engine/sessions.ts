import type { Runner } from '../store/store.ts'
import { flagOf, limitOf, mustBeObject, placeOf } from './given.ts'
import { endedSessions, livingSessions, type SessionRow } from './overview.sql.ts'

/** A worker process, as the database knows it. */
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
  /** What ended it: itself, or a rung of the recovery ladder. */
  endedBy: string | null
  /** The signal or the code with which its process ended, if a supervisor saw it. */
  exit: string | null
  /** What it serves: each kind, and at the same place the queue that it is served in. */
  kinds: string[]
  queues: string[]
  concurrency: number
  /** How many attempts it holds. */
  running: number
  /** Whether it claims jobs; not so while it drains. */
  isClaiming: boolean
  /** How many handlers took a place at its last heartbeat, also those of jobs that it no longer holds. */
  busy: number
  /** How many of its handlers ignored their signal and still run. */
  unresponsive: number
  /** How long its event loop had not turned at its last heartbeat: a handler blocks it. 0 if it turns. */
  blockedMs: number
  /** Whether it holds its lock on the server at this moment. */
  isLocked: boolean
  /** Whether it has not ended, and its lease has not run out. */
  isLive: boolean
}

/** Which sessions to list. */
export interface SessionOptions {
  /** Those that have ended, instead of those that have not. */
  ended?: boolean
  /** Only those opened before this one: the last id of the page before. */
  before?: number
  /** Default 100, at most 1000. */
  limit?: number
}

/** A page of sessions, the latest first. */
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
