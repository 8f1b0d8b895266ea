import { raw, sql, statement } from '../postgres/sql.ts'
import { ofKind } from '../transitions/kind.sql.ts'
import { announceQueue } from '../transitions/queue-event.sql.ts'
import { notify } from '../transitions/wake.sql.ts'

/** A job, as a row. */
export interface JobRow {
  id: string
  kind: string
  queue: string
  tenant: string
  state: string
  stage: number
  attempt: number
  failures: number
  crashes: number
  priority: number
  submitted_at: Date
  run_at: Date | null
  deadline_at: Date | null
  session_id: number | null
  finished_at: Date | null
  error: { code: string; message: string; stack?: string } | null
}

const columns =
  raw(`job.id, job.kind, job.queue, job.tenant, job.state, job.stage, job.attempt, job.failures, job.crashes, job.priority,
    job.submitted_at, job.run_at, job.deadline_at, job.session_id, job.finished_at, job.error`)

/** A job with everything except its events. */
export interface JobDetailRow extends JobRow {
  input: unknown
  meta: Record<string, unknown> | null
  outputs: { name: string; stage: number; output: unknown }[]
  progress: {
    stage: number
    attempt: number
    done: number
    total: number | null
    note: string | null
    at: string
  } | null
  stages: { name: string; optional: boolean; signal?: string }[] | null
}

/** One job with everything except its events. */
export const getJob = statement<JobDetailRow>()(
  'job.get',
  (p: { id: string; tenant: string | null }) => sql`
  select ${columns}, coalesce(job.input, payload.input) as input, payload.meta, ${ofKind('stages', 'job')} as stages,
    coalesce((
      select json_agg(json_build_object('name', output.name, 'stage', output.stage, 'output', output.output) order by output.stage)
      from holdfast.stage_output as output
      where output.job_id = job.id
    ), '[]') as outputs,
    (
      select json_build_object('stage', progress.stage, 'attempt', progress.attempt, 'done', progress.done, 'total', progress.total, 'note', progress.note, 'at', progress.at)
      from holdfast.job_progress as progress
      where progress.job_id = job.id
    ) as progress
  from holdfast.job_status as job
  left join holdfast.job_payload as payload on payload.job_id = job.id
  where job.id = ${p.id}::uuid and (${p.tenant}::text is null or job.tenant = ${p.tenant})`,
)

/** Which jobs to list; null means any. */
export interface ListFilter {
  kind: string | null
  queue: string | null
  tenant: string | null
  states: string[] | null
  /** Whether to include fan-out items. */
  hasItems: boolean
  /** Only jobs submitted before this one. */
  before: string | null
  /** Only jobs with this id, or submitted after it. */
  from: string | null
  limit: number
}

/** One event of a job's timeline. */
export interface EventRow {
  seq: number
  at: Date
  type: string
  job_id: string
  kind: string
  tenant: string
  session_id: number | null
  attempt: number
  stage: number
  data: unknown
}

/** The timeline of a job, oldest first. */
export const jobTimeline = statement<EventRow>()(
  'event.timeline',
  (p: { id: string; after: number; limit: number }) => sql`
  select seq, at, type, job_id, kind, tenant, session_id, attempt, stage, data
  from holdfast.event
  where job_id = ${p.id}::uuid and seq > ${p.after}::bigint
  order by seq
  limit ${p.limit}`,
)

/** The state of jobs. No row back for a job that does not exist. */
export const stateOf = statement<{ id: string; state: string; tenant: string }>()(
  'job.state',
  (p: { ids: string[]; tenant: string | null }) => sql`
  select job.id, job.state, job.tenant
  from holdfast.job_status as job
  where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant})`,
)

/** Pauses or resumes a queue. A resume wakes all workers: idle ones would otherwise notice only by polling. */
export const pauseQueue = statement<{ woken: string | null }>()(
  'queue.pause',
  (p: { name: string; isPaused: boolean; by?: string | null; reason?: string | null }) => sql`
  with changed as (
    insert into holdfast.queue (name, paused_at, paused_by, pause_reason)
    values (${p.name}, case when ${p.isPaused}::boolean then now() end, case when ${p.isPaused}::boolean then ${p.by ?? null}::text end,
      case when ${p.isPaused}::boolean then ${p.reason ?? null}::text end)
    on conflict (name) do update
    set paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
    returning name
  ),
  ${announceQueue(sql`case when ${p.isPaused}::boolean then 'queue.paused' else 'queue.resumed' end`, p)}
  select case when not ${p.isPaused}::boolean then ${notify('holdfast_wake')} end as woken
  from changed`,
)
