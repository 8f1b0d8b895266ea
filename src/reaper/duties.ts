import type { Statement } from '../store/sql.ts'
import type { Runner } from '../store/store.ts'
import { barrierDuties } from './barrier-duties.ts'
import { clearCrashes, findUndue, type UndueRow } from './clear.sql.ts'
import { moveEach } from './move-each.ts'
import type { OrphanName } from './orphans.ts'
import { ownedDuties } from './owned-duties.ts'
import { settleParked } from './parked-duty.ts'
import { report } from './report.ts'
import { findAbandoned, findHung, type OrphanRow, quarantineJobs, reviveJobs } from './revive.sql.ts'
import {
  closeReturned,
  type EndedRow,
  endDeadSessions,
  endKeyless,
  forgetRefusals,
  forgetSessions,
  returnedSessions,
  strandedKinds,
} from './session.sql.ts'

/** An orphan that was moved on, with its class. */
export type Orphan = OrphanRow & { orphan: OrphanName }

/** A barrier that was mended: what was wrong, and what was done. */
export interface Healed {
  barrier: string
  /** The job that it moved, if it moved one. */
  job?: string
  orphan: OrphanName
  message: string
}

/** An orphan that could not be moved on, and why. */
export type FailedRow = Pick<OrphanRow, 'id' | 'lost_ms'> & {
  error: unknown
  orphan?: OrphanName
  isBarrier?: true
}

/** A barrier that was left as it is, and why: nothing failed. */
export interface Skipped {
  barrier: string
  orphan: OrphanName
  message: string
  /** Whether somebody ought to look at it all the same. */
  isError: boolean
}

/** Something to be told, about no orphan. */
export interface Note {
  isError: boolean
  message: string
  facts: Record<string, unknown>
}

/** What one run of a duty did. */
export interface DutyReport {
  revived: Orphan[]
  quarantined: Orphan[]
  ended: EndedRow[]
  stranded: { queue: string; kind: string; waiting_ms: number }[]
  healed: Healed[]
  /** Rows that could not be moved, each with its reason; they do not stop the others. */
  failed: FailedRow[]
  /** Rows that another transaction holds: nothing is wrong with them, and the next sweep tries again. */
  held: FailedRow[]
  /** What was looked at and left alone. */
  skipped: Skipped[]
  notes: Note[]
  /** Whether there may be more than one batch holds. */
  isFull: boolean
}

/** One thing that the leader does. Small, batched, ordered, and harmless if it runs twice at once. */
export interface Duty {
  readonly name: string
  readonly everyMs: number
  /** Whether it is done by every process that can, and not by the leader alone: rows decide who deals with what. */
  readonly isAnyones?: true
  /** The signal fires when nobody waits for the rest; duties that ask only the database need not mind it. */
  run(store: Runner, signal?: AbortSignal): Promise<DutyReport>
}

const batch = 500
const day = 86_400_000

const endSessions: Duty = {
  name: 'endSessions',
  everyMs: 0,
  async run(store) {
    const ended = await store.run(endDeadSessions, { limit: batch })
    return report({ ended, isFull: ended.length === batch })
  },
}

/** A key that is revoked ends its sessions by itself; this is for whoever died in between, and for keys that expire. */
const endKeylessSessions: Duty = {
  name: 'endKeyless',
  everyMs: 1_000,
  async run(store) {
    const ended = await store.run(endKeyless, { limit: batch })
    return report({ ended, isFull: ended.length === batch })
  },
}

/** Takes crashes back whose workers were heard of again, before they can cost a job its last life. */
const clearReturned: Duty = {
  name: 'clearReturned',
  everyMs: 0,
  async run(store) {
    const sessions = (await store.run(returnedSessions, { limit: 20 })).map(({ id }) => id)
    if (sessions.length === 0) return report({})
    const undue = await store.run(findUndue, { sessions, limit: 10 * batch })
    const { done, failed, held } = await moveEach(
      store,
      undue,
      (runner, crashes: UndueRow[]) => runner.run(clearCrashes, { crashes }),
    )
    if (undue.length === 0) await store.run(closeReturned, { ids: sessions })
    const notes = done.length > 0 ? [cleared(done.length, sessions)] : []
    return report({ failed, held, notes, isFull: done.length > 0 || undue.length === 0 })
  },
}

const cleared = (jobs: number, sessions: number[]): Note => ({
  isError: false,
  message: 'workers came back that had been taken for dead; the crashes of their jobs do not count',
  facts: { jobs, sessions },
})

/** Finds orphans and moves them on. A batch of rows that can't be moved is stepped over next time, or it would hide those behind it. */
function reviving(name: string, find: typeof findAbandoned): Duty {
  let stepOver = 0
  return {
    name,
    everyMs: 0,
    async run(store) {
      const found = await store.run(find, { limit: batch, offset: stepOver })
      const done = await moveOn(store, found)
      stepOver = found.length === batch ? stepOver + done.failed.length + done.held.length : 0
      return done
    },
  }
}

const reportStranded: Duty = {
  name: 'reportStranded',
  everyMs: 60_000,
  run: async (store) => report({ stranded: await store.run(strandedKinds, {}) }),
}

const forget: Duty = {
  name: 'forget',
  everyMs: 60_000,
  async run(store) {
    const sessions = await store.run(forgetSessions, { olderThanMs: day, limit: batch })
    const refusals = await store.run(forgetRefusals, { olderThanMs: 7 * day, limit: batch })
    return report({ isFull: sessions.length === batch || refusals.length === batch })
  },
}

/** All duties of one reaper, in the order in which a sweep runs them: a session must be ended before its jobs are abandoned. */
export const makeDuties = (): readonly Duty[] => [
  endSessions,
  endKeylessSessions,
  clearReturned,
  reviving('reviveAbandoned', findAbandoned),
  reviving('reviveHung', findHung),
  ...barrierDuties,
  ...ownedDuties,
  settleParked,
  reportStranded,
  forget,
]

/** The duties, for whoever sweeps once. */
export const duties: readonly Duty[] = makeDuties()

/** Revives what was found, or quarantines what has spent its crash budget. */
export async function moveOn(store: Runner, found: OrphanRow[]): Promise<DutyReport> {
  const move = (orphans: OrphanRow[], statement: Statement<{ orphans: OrphanRow[] }, { id: string }>) =>
    moveEach(
      store,
      orphans,
      (runner, some) => runner.run(statement, { orphans: some }),
      ({ lease_id }) => lease_id,
    )
  const spent = await move(
    found.filter((row) => row.is_spent),
    quarantineJobs,
  )
  const others = await move(
    found.filter((row) => !row.is_spent),
    reviveJobs,
  )
  const named = (rows: OrphanRow[]) => rows.map((row) => ({ ...row, orphan: classOf(row) }))
  return report({
    revived: named(others.moved),
    quarantined: named(spent.moved),
    failed: [...spent.failed, ...others.failed],
    held: [...spent.held, ...others.held],
    // only what moved counts: rows that always fail must not keep the sweep spinning
    isFull: found.length === batch && spent.moved.length + others.moved.length > 0,
  })
}

function classOf({ rung, stage }: OrphanRow): OrphanName {
  if (rung === 'deadline passed') return 'hung-handler'
  if (rung === 'session row gone') return 'session-row-gone'
  if (rung === 'itself') return 'claimed-by-ended-session'
  return stage > 0 ? 'later-stage-dead-session' : 'running-dead-session'
}
