import type { Moment } from './facts.ts'

/** The slot that it was submitted for, and the schedule, unless that was removed. */
export interface ScheduledFacts {
  schedule: string
  slotAt: Moment
  what: string
  decidedAt: Moment
  /** Who triggered or backfilled it. */
  by?: string | null
  nextAt?: Moment | null
  bufferedAt?: Moment | null
  pausedAt?: Moment | null
  missed?: string | null
  problem?: string | null
  /** Whether it is the last job of the schedule. */
  isLast?: boolean
  /** Whether a later slot replaced it. */
  isReplaced?: boolean
}
