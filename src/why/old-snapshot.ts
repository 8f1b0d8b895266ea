import { formatDuration } from '../errors/duration.ts'
import type { Moment } from './facts.ts'

/** An open snapshot: of a transaction, a prepared transaction, a replica with hot standby feedback, or a replication slot. */
export interface SnapshotFacts {
  what: 'transaction' | 'prepared' | 'replica' | 'slot'
  pid: number | null
  /** Of a prepared transaction or a slot. */
  name: string | null
  application: string | null
  /** Null if unknown. */
  since: Moment | null
}

/** What holds a snapshot, in words. */
export function formatSnapshot({ what, pid, name, application, since }: SnapshotFacts, nowMs: number): string {
  const who = {
    transaction: `a transaction (${application ?? 'an unnamed client'}, pid ${pid})`,
    prepared: `the prepared transaction ${name}`,
    replica: `a replica with hot_standby_feedback (${application ?? 'unnamed'}, pid ${pid})`,
    slot: `the replication slot ${name}`,
  }[what]
  return since === null ? who : `${who}, open for ${formatDuration(nowMs - Date.parse(since))}`
}
