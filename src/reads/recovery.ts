import type { Config } from '../config/config.ts'
import type { JobId } from '../job/id.ts'
import { currentLeader, type LeaderRow } from '../leader/leader.sql.ts'
import type { Runner } from '../postgres/store.ts'
import { boundOf, ladder, type Rung } from '../reaper/recovery-bound.ts'
import { findAbandoned, findHung } from '../reaper/revive.sql.ts'
import { strandedKinds } from '../reaper/session.sql.ts'
import type { SnapshotFacts } from '../why/old-snapshot.ts'
import { lastRefusals, lastRevivals, oldestSnapshot } from './recovery.sql.ts'

/** The process that is leader, and its lease. */
export interface Leader {
  holder: string
  term: number
  acquiredAt: Date
  renewedAt: Date
  leaseUntil: Date
  /** When its last sweep ended, and how long it took; null before the first. */
  sweptAt: Date | null
  sweepMs: number | null
  /** False once its lease has expired: until another process takes over, nothing is revived. */
  isLive: boolean
}

/** An orphan that was revived or quarantined. */
export interface Revival {
  at: Date
  job: JobId
  kind: string
  tenant: string
  attempt: number
  type: string
  /** The rung that detected it, how long its worker was lost, and how many workers it has lost. */
  data: unknown
}

/** A refused write of a worker that had lost its lease. */
export interface Refusal {
  at: Date
  job: JobId
  attempt: number
  session: number
  write: string
}

/** A kind with due jobs in a queue that no live worker serves for it. */
export interface Stranded {
  queue: string
  kind: string
  waitingMs: number
}

/** A snapshot that stays open: of a transaction, a prepared transaction, a replica with hot standby feedback, or a replication slot. */
export interface OldSnapshot extends Omit<SnapshotFacts, 'since'> {
  /** Null if it is unknown. */
  since: Date | null
}

/** The state of recovery, and what was recovered recently. */
export interface Recovery {
  /** Null if there has been no leader yet. */
  leader: Leader | null
  /** The maximum time until a lost job runs again, by the settings of this process. */
  boundMs: number
  ladder: Rung[]
  /** Attempts that have lost their workers and are not recovered yet; counted up to 1000. */
  orphans: number
  /** Kinds with due jobs that no live worker serves in their queue, and how long the oldest has been due. */
  stranded: Stranded[]
  /** The oldest snapshot that keeps the server from vacuuming rows left by claims and settles, if it is at least a minute old. */
  oldestSnapshot: OldSnapshot | null
  /** The last 20 of each. */
  revivals: Revival[]
  refusals: Refusal[]
}

const most = 20
const mostOrphans = 1_000

/** The oldest snapshot that keeps the server from vacuuming rows left by claims and settles; null if it is under a minute old. */
export async function oldSnapshotOf(store: Runner): Promise<OldSnapshot | null> {
  const [row] = await store.run(oldestSnapshot, {})
  return row?.snapshot
    ? { ...row.snapshot, since: row.snapshot.since === null ? null : new Date(row.snapshot.since) }
    : null
}

/** Reads the state of recovery, and what was recovered recently. */
export async function recoveryOf(store: Runner, config: Config): Promise<Recovery> {
  const [leaders, abandoned, hung, revivals, refusals, stranded, snapshot] = await Promise.all([
    store.run(currentLeader, {}),
    store.run(findAbandoned, { limit: mostOrphans }),
    store.run(findHung, { limit: mostOrphans }),
    store.run(lastRevivals, { limit: most }),
    store.run(lastRefusals, { limit: most }),
    store.run(strandedKinds, {}),
    oldSnapshotOf(store),
  ])
  return {
    leader: leaders[0] ? leaderOf(leaders[0]) : null,
    boundMs: boundOf(config),
    ladder: ladder(config),
    orphans: Math.min(mostOrphans, abandoned.length + hung.length),
    stranded: stranded.map(({ queue, kind, waiting_ms }) => ({ queue, kind, waitingMs: waiting_ms })),
    oldestSnapshot: snapshot,
    revivals: revivals.map(({ seq: _seq, job_id, ...row }) => ({ ...row, job: job_id as JobId })),
    refusals: refusals.map(({ job_id, session_id, ...row }) => ({ ...row, job: job_id as JobId, session: session_id })),
  }
}

function leaderOf(row: LeaderRow): Leader {
  return {
    holder: row.holder,
    term: row.term,
    acquiredAt: row.acquired_at,
    renewedAt: row.renewed_at,
    leaseUntil: row.lease_until,
    sweptAt: row.swept_at,
    sweepMs: row.sweep_ms,
    isLive: row.is_current,
  }
}
