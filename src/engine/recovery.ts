import type { Config } from '../config/config.ts'
import type { JobId } from '../job/id.ts'
import { currentLeader, type LeaderRow } from '../leader/leader.sql.ts'
import { boundOf, ladder, type Rung } from '../reaper/bound.ts'
import { findAbandoned, findHung } from '../reaper/revive.sql.ts'
import { strandedKinds } from '../reaper/session.sql.ts'
import type { Runner } from '../store/store.ts'
import { lastRefusals, lastRevivals } from './recovery.sql.ts'

/** Who runs the clockwork. */
export interface Leader {
  holder: string
  term: number
  acquiredAt: Date
  renewedAt: Date
  leaseUntil: Date
  /** When its last sweep ended, and how long that took; null before the first. */
  sweptAt: Date | null
  sweepMs: number | null
  /** False once its lease has run out: until another process takes over, nothing is revived. */
  isLive: boolean
}

/** An orphan that was moved on. */
export interface Revival {
  at: Date
  job: JobId
  kind: string
  tenant: string
  attempt: number
  type: string
  /** The rung that gave it away, how long its worker was lost, and how many it has lost. */
  data: unknown
}

/** A write of a worker that had lost its lease. */
export interface Refusal {
  at: Date
  job: JobId
  attempt: number
  session: number
  write: string
}

/** A kind whose jobs wait in a queue, and nobody comes for them. */
export interface Stranded {
  queue: string
  kind: string
  waitingMs: number
}

/** How lost work is found, and what was found lately. */
export interface Recovery {
  /** Null if no process has led yet. */
  leader: Leader | null
  /** The latest moment at which any lost job moves again, by the settings of this process. */
  boundMs: number
  ladder: Rung[]
  /** Attempts that have lost their workers and were not moved on yet; at most 1000 are counted. */
  orphans: number
  /** Kinds with due jobs that no living worker serves in their queue, and how long the first has been due. */
  stranded: Stranded[]
  /** The last 20 of each. */
  revivals: Revival[]
  refusals: Refusal[]
}

const most = 20
const mostOrphans = 1_000

/** How lost work is found, and what was found lately. */
export async function recoveryOf(store: Runner, config: Config): Promise<Recovery> {
  const [leaders, abandoned, hung, revivals, refusals, stranded] = await Promise.all([
    store.run(currentLeader, {}),
    store.run(findAbandoned, { limit: mostOrphans }),
    store.run(findHung, { limit: mostOrphans }),
    store.run(lastRevivals, { limit: most }),
    store.run(lastRefusals, { limit: most }),
    store.run(strandedKinds, {}),
  ])
  return {
    leader: leaders[0] ? leaderOf(leaders[0]) : null,
    boundMs: boundOf(config),
    ladder: ladder(config),
    orphans: Math.min(mostOrphans, abandoned.length + hung.length),
    stranded: stranded.map(({ queue, kind, waiting_ms }) => ({ queue, kind, waitingMs: waiting_ms })),
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
