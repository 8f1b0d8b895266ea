import type { EventType } from '../job/event-type.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'

/** One event of the log. */
export interface LogEvent {
  /** Its place in the log. Rises per job. */
  seq: number
  /** Unique over all databases, and the same however often the event is told. */
  id: string
  at: Date
  type: EventType
  /** Null if it is about no job. */
  jobId: JobId | null
  kind: string | null
  tenant: string
  /** What the job became by it; null if it moved no job. */
  state: State | null
  /** The stage that it is about, from 0. */
  stage: number
  attempt: number
  sessionId: number | null
  /** If it is about an item of a fan-out: the job whose item it is (null if that was redone from the start), its key, and its place among the items. */
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
  /** Not there in events that were put aside by an earlier version. */
  item?: { parent: string | null; key: string; position: number } | null
  data: unknown
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

/** A number alone would come again after a backup is restored, and a receiver would take another event for one it has. */
function eventIdOf(jobId: string | null, seq: number): string {
  return `evt_${(jobId ?? '').replaceAll('-', '')}_${seq}`
}
