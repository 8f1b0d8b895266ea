import type { EventType } from '../job/event-type.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'

/** One event of the log. */
export interface LogEvent {
  /** Its position in the log. It increases per job. */
  seq: number
  /** Unique across all databases, and the same each time the event is read. */
  id: string
  at: Date
  type: EventType
  /** Null if it is not about a job. */
  jobId: JobId | null
  kind: string | null
  tenant: string
  /** The state that it moved the job to; null if it moved no job. */
  state: State | null
  /** The number of the stage that it is about, from 0. */
  stage: number
  attempt: number
  sessionId: number | null
  /** If it is about an item of a fan-out: the job that the item belongs to (null if that was redone from the start), its key, and its position among the items. */
  item: { parent: JobId | null; key: string; position: number } | null
  data: unknown
}

/** An event, as a row. */
export interface EventRow {
  seq: number
  at: Date
  type: string
  state: string | null
  job_id: string | null
  kind: string | null
  tenant: string
  session_id: number | null
  attempt: number
  stage: number
  /** Missing in events that an earlier version parked. */
  item?: { parent: string | null; key: string; position: number } | null
  data: unknown
  /** In a parked event: it could not be read, so its data is missing, and perhaps the rest. It is read again when it is replayed. */
  isUnread?: true
}

/** The event in a row. */
export function eventOf(row: EventRow): LogEvent {
  return {
    seq: row.seq,
    id: eventIdOf(row.job_id, row.seq),
    at: row.at,
    type: row.type as EventType,
    jobId: row.job_id as JobId | null,
    kind: row.kind,
    tenant: row.tenant,
    state: row.state as State | null,
    stage: row.stage,
    attempt: row.attempt,
    sessionId: row.session_id,
    item: (row.item ?? null) as LogEvent['item'],
    data: row.data,
  }
}

/** The number alone could recur after a backup is restored, and a receiver would take a different event for one that it has seen. */
function eventIdOf(jobId: string | null, seq: number): string {
  return `evt_${(jobId ?? '').replaceAll('-', '')}_${seq}`
}
