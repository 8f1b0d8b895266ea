import type { Runner } from '../postgres/store.ts'
import type { OrphanName } from './orphans.ts'
import type { OrphanRow } from './revive.sql.ts'
import type { EndedRow } from './session.sql.ts'

/** One task of the leader. It is small, batched, ordered, and harmless if two leaders run it at once. */
export interface Duty {
  /** Its name in metrics and logs. */
  readonly name: string
  readonly everyMs: number
  /** Set if every process that can run it does so, not only the leader. Rows then decide which process handles what. */
  readonly isAnyones?: true
  /**
   * How long it may go on while it reports that there is more. `unlimited`: until it is done, because later duties rely on that. `own`: a
   * budget of its own in each sweep. Default: the budget of a sweep, which it shares with others; the next sweep follows at once.
   */
  readonly budget?: 'unlimited' | 'own'
  /** The signal fires when the process stops. Duties that query only the database may ignore it. */
  run(store: Runner, signal?: AbortSignal): Promise<DutyReport>
}

/** What one run of a duty did. */
export interface DutyReport {
  revived: Orphan[]
  quarantined: Orphan[]
  ended: EndedRow[]
  stranded: { queue: string; kind: string; waiting_ms: number }[]
  healed: Healed[]
  /** Rows that could not be moved, each with its reason. They do not stop the others. */
  failed: FailedRow[]
  /** Rows left for a later sweep, each with its reason: another transaction holds them, or they were refused recently. */
  held: FailedRow[]
  /** Barriers that were examined and left unchanged. */
  skipped: Skipped[]
  notes: Note[]
  /** What retention removed, and how long the oldest job that is still there has been due. */
  pruned?: { removed: number; overdueMs: number }
  /** Whether there may be more rows than one batch holds. */
  isFull: boolean
}

/** An orphan that was moved, with its class. */
export type Orphan = OrphanRow & { orphan: OrphanName }

/** A barrier that was repaired: what was wrong, and what was done. */
export interface Healed {
  barrier: string
  /** The job that the repair moved, if any. */
  job?: string
  orphan: OrphanName
  message: string
}

/** An orphan that could not be moved, and why. */
export type FailedRow = Pick<OrphanRow, 'id' | 'lost_ms'> & {
  error: unknown
  orphan?: OrphanName
  isBarrier?: true
}

/** A barrier that was left unchanged, and why. Nothing failed. */
export interface Skipped {
  barrier: string
  orphan: OrphanName
  message: string
  /** Whether someone should look at it anyway. */
  isError: boolean
}

/** A log message that is not about an orphan. */
export interface Note {
  isError: boolean
  message: string
  facts: Record<string, unknown>
}

/** A report with these parts; all others are empty. */
export function report(part: Partial<DutyReport>): DutyReport {
  return {
    revived: [],
    quarantined: [],
    ended: [],
    stranded: [],
    healed: [],
    failed: [],
    held: [],
    skipped: [],
    notes: [],
    isFull: false,
    ...part,
  }
}
