import type { CanBePartial, OutputOf, OutputsOf } from '../job/define.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import type { EventRow, JobDetailRow, JobRow } from './job.sql.ts'

/** A job, as it is listed. */
export interface JobSummary {
  id: JobId
  kind: string
  queue: string
  tenant: string
  state: State
  /** The number of its current stage, from 0. */
  stage: number
  attempt: number
  /** How many times the current stage has failed. */
  failures: number
  /** How many workers the current stage has lost. */
  crashes: number
  priority: number
  submittedAt: Date
  runAt: Date | null
  deadlineAt: Date | null
  finishedAt: Date | null
  sessionId: number | null
  error: { code: string; message: string; stack?: string } | null
}

/** A job with its input, outputs and progress. */
export interface Job extends JobSummary {
  input: unknown
  meta: Record<string, unknown> | null
  stages: { name: string; optional: boolean; signal?: string }[]
  /** The outputs of its stages so far, by stage. */
  outputs: Record<string, unknown>
  progress: {
    stage: number
    attempt: number
    done: number
    total: number | null
    note: string | null
    at: string
  } | null
}

/** An event of a job's timeline. */
export interface TimelineEvent {
  seq: number
  at: Date
  type: string
  attempt: number
  stage: number
  sessionId: number | null
  data: unknown
}

/** All stages returned. */
interface Succeeded<J> {
  state: 'succeeded'
  /** The output of the last stage. */
  output: OutputOf<J>
  outputs: OutputsOf<J>
}

/** An optional stage failed permanently. */
interface Partial_<J> {
  state: 'partial'
  output: null
  /** The outputs of the stages before the failed one. */
  outputs: Partial<OutputsOf<J>>
  error: { code: string; message: string }
}

/** All stages returned, but some items failed, though not more than tolerated. */
interface Flawed<J> {
  state: 'partial'
  output: OutputOf<J>
  outputs: OutputsOf<J>
  error: null
}

/** The result of a job. It can be partial only if its kind has an optional stage, or one that fans out. */
export type Result<J> =
  | Succeeded<J>
  | (CanBePartial<J> extends false ? never : Partial_<J>)
  | ('items' extends CanBePartial<J> ? Flawed<J> : never)

/** The summary in a row. */
export function summaryOf(row: JobRow): JobSummary {
  return {
    id: row.id as JobId,
    kind: row.kind,
    queue: row.queue,
    tenant: row.tenant,
    state: row.state as State,
    stage: row.stage,
    attempt: row.attempt,
    failures: row.failures,
    crashes: row.crashes,
    priority: row.priority,
    submittedAt: row.submitted_at,
    runAt: row.run_at,
    deadlineAt: row.deadline_at,
    finishedAt: row.finished_at,
    sessionId: row.session_id,
    error: row.error,
  }
}

/** The job in a row. */
export function jobOf(row: JobDetailRow): Job {
  return {
    ...summaryOf(row),
    input: row.input,
    meta: row.meta,
    stages: row.stages ?? [],
    outputs: Object.fromEntries(row.outputs.map(({ name, output }) => [name, output])),
    progress: row.progress,
  }
}

/** The event in a row. */
export function timelineEventOf(row: EventRow): TimelineEvent {
  return {
    seq: row.seq,
    at: row.at,
    type: row.type,
    attempt: row.attempt,
    stage: row.stage,
    sessionId: row.session_id,
    data: row.data,
  }
}
