import { sql, statement } from '../store/sql.ts'

/** Where a job of a cell stands. */
export interface StandingRow {
  id: string
  kind: string
  state: string
  attempt: number
  stage: number
  crashes: number
  session_id: number | null
  /** Whether it is an item that runs the `each` of its kind, and which one. */
  is_part: boolean
  position: number | null
  /** The process that holds it; null if nobody living does. */
  pid: number | null
}

/** Every job of the cell, with the process that holds it. */
export const standing = statement<StandingRow>()(
  'prove.standing',
  () => sql`
  select job.id, job.kind, job.state, job.attempt, job.stage, job.crashes, job.session_id, job.is_part, job.position, session.pid
  from holdfast.job_status as job
  left join holdfast.session on session.id = job.session_id and session.ended_at is null
  order by job.id`,
)

/** Locks all jobs that wait in a queue, and all leases, that nobody else holds. */
export const holdJobs = statement<{ id: string }>()(
  'prove.hold_jobs',
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
  )
  select id from leases
  union all
  select id from queued`,
)

/** Locks all barriers that nobody else holds. */
export const holdBarriers = statement<{ id: string }>()(
  'prove.hold_barriers',
  () => sql`
  select id
  from holdfast.barrier
  for update skip locked`,
)

/** The living sessions of a process. */
export const livingSessions = statement<{ id: number }>()(
  'prove.living_sessions',
  (p: { pid: number }) => sql`
  select id
  from holdfast.session
  where pid = ${p.pid} and ended_at is null`,
)

/** Which of these sessions live. */
export const stillLiving = statement<{ id: number }>()(
  'prove.still_living',
  (p: { ids: number[] }) => sql`
  select id
  from holdfast.session
  where id = any(${p.ids}::bigint[]) and ended_at is null`,
)

/** One event of a job, without its data. */
export interface LoggedRow {
  job_id: string
  type: string
  attempt: number
  stage: number
}

/** Every event of the cell that announces a move of a job, in the order of each job. */
export const logged = statement<LoggedRow>()(
  'prove.events',
  () => sql`
  select job_id, type, attempt, stage
  from holdfast.event
  where type not in ('job.log', 'job.cleared')
  order by job_id, seq`,
)

/** The committed output of a stage. */
export interface CommittedRow {
  job_id: string
  stage: number
  name: string
  attempt: number
  output: unknown
}

/** Every committed output of the cell. */
export const committed = statement<CommittedRow>()(
  'prove.outputs',
  () => sql`
  select job_id, stage, name, attempt, output
  from holdfast.stage_output
  order by job_id, stage`,
)
