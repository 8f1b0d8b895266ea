import { sql, statement } from '../postgres/sql.ts'

/** The state of a job of a cell. */
export interface JobRow {
  id: string
  kind: string
  state: string
  attempt: number
  stage: number
  crashes: number
  crash_budget: number
  session_id: number | null
  /** Whether it is an item that runs the `each` of its kind, and which item. */
  is_part: boolean
  position: number | null
  /** The process that holds it; null if no live one does. */
  pid: number | null
}

/** Every job of the cell, with the process that holds it. */
export const cellJobs = statement<JobRow>()(
  'prove.jobs',
  () => sql`
  select job.id, job.kind, job.state, job.attempt, job.stage, job.crashes, job.crash_budget, job.session_id, job.is_part, job.position, session.pid
  from holdfast.job_status as job
  left join holdfast.session on session.id = job.session_id and session.ended_at is null
  order by job.id`,
)

/** Locks all queued and waiting jobs and all leases that are not locked yet. */
export const lockJobs = statement<{ id: string }>()(
  'prove.lock_jobs',
  () => sql`
  with leases as materialized (
    select id::text
    from holdfast.lease
    for update skip locked
  ),
  queued as materialized (
    select job_id::text as id
    from holdfast.ready
    for update skip locked
  ),
  waiting as materialized (
    select job_id::text as id
    from holdfast.waiting
    for update skip locked
  )
  select id from leases
  union all
  select id from queued
  union all
  select id from waiting`,
)

/** Locks all barriers that are not locked yet. */
export const lockBarriers = statement<{ id: string }>()(
  'prove.lock_barriers',
  () => sql`
  select id
  from holdfast.barrier
  for update skip locked`,
)

/** The live sessions of a process. */
export const liveSessions = statement<{ id: number }>()(
  'prove.live_sessions',
  (p: { pid: number }) => sql`
  select id
  from holdfast.session
  where pid = ${p.pid} and ended_at is null`,
)

/** Which of these sessions are still live. */
export const stillLive = statement<{ id: number }>()(
  'prove.still_live',
  (p: { ids: number[] }) => sql`
  select id
  from holdfast.session
  where id = any(${p.ids}::bigint[]) and ended_at is null`,
)

/** One event of a job, without its data. */
export interface EventRow {
  job_id: string
  type: string
  attempt: number
  stage: number
}

/** Every event of the cell that announces a move, in order per job. */
export const moveEvents = statement<EventRow>()(
  'prove.events',
  () => sql`
  select job_id, type, attempt, stage
  from holdfast.event
  where type not in ('job.log', 'job.cleared')
  order by job_id, seq`,
)

/** The committed output of a stage. */
export interface OutputRow {
  job_id: string
  stage: number
  name: string
  attempt: number
  output: unknown
}

/** Every committed output of the cell. */
export const committedOutputs = statement<OutputRow>()(
  'prove.outputs',
  () => sql`
  select job_id, stage, name, attempt, output
  from holdfast.stage_output
  order by job_id, stage`,
)
