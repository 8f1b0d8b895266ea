import type { DutyReport } from './duties.ts'

/** A report of a duty that did only this. */
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
