import { eventOf, legal, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'
import type { PreparedJob } from './prepare.ts'

/**
 * Inserts jobs with their inputs and their `submitted` events, many at a time. A job whose key is taken comes back with
 * no row: somebody else submitted it first. Keys are taken in order, so that two batches with the same keys can't deadlock.
 * Wakes a worker only if one asked for it, because every NOTIFY takes a lock that all commits share.
 */
export const submitJobs = statement<{ id: string }>()(
  'job.submit',
  (p: { jobs: PreparedJob[] }) => sql`
  with given as materialized (
    select *
    from unnest(
      ${p.jobs.map((job) => job.id)}::uuid[], ${p.jobs.map((job) => job.kind)}::text[], ${p.jobs.map((job) => job.queue)}::text[],
      ${p.jobs.map((job) => job.tenant)}::text[], ${p.jobs.map((job) => job.priority)}::smallint[],
      ${p.jobs.map((job) => job.crashBudget)}::smallint[], ${p.jobs.map((job) => job.delayMs)}::float8[],
      ${p.jobs.map((job) => job.runAt)}::timestamptz[], ${p.jobs.map((job) => job.key)}::text[],
      ${p.jobs.map((job) => job.fingerprint)}::text[], ${p.jobs.map((job) => job.input)}::text[], ${p.jobs.map((job) => job.meta)}::text[]
    ) as given (id, kind, queue, tenant, priority, crash_budget, delay_ms, run_at, key, fingerprint, input, meta)
  ),
  keyed as (
    insert into holdfast.job_key (tenant, key, job_id, fingerprint)
    select tenant, key, id, fingerprint
    from given
    where key is not null
    order by tenant, key
    on conflict (tenant, key) do nothing
    returning job_id
  ),
  accepted as materialized (
    select *
    from given
    where key is null or id in (select job_id from keyed)
  ),
  payload as (
    insert into holdfast.job_payload (job_id, input, meta)
    select id, input::json, meta::json
    from accepted
  ),
  announced as (
    insert into holdfast.event (type, job_id, kind, tenant, attempt, stage)
    select ${eventOf('submit')}, id, kind, tenant, 0, 0
    from accepted
  )
  insert into holdfast.live_job (id, kind, queue, tenant, state, priority, crash_budget, submitted_at, run_at)
  select id, kind, queue, tenant, ${target('submit')}, priority, crash_budget, now(),
    greatest(now(), coalesce(run_at, now() + delay_ms * interval '1 ms'))
  from accepted
  returning id, ${wakeIdle} as woken`,
)

/** Who took these keys, and with what. */
export const keyHolders = statement<{ tenant: string; key: string; job_id: string; fingerprint: string }>()(
  'key.holders',
  (p: { keys: { tenant: string; key: string }[] }) => sql`
  select job_key.tenant, job_key.key, job_key.job_id, job_key.fingerprint
  from unnest(${p.keys.map((key) => key.tenant)}::text[], ${p.keys.map((key) => key.key)}::text[]) as given (tenant, key)
  join holdfast.job_key on job_key.tenant = given.tenant and job_key.key = given.key`,
)

/** Cancels jobs, whatever live state they are in; the row decides. Tells the sessions that run them. */
export const cancelJobs = statement<{ id: string }>()(
  'job.cancel',
  (p: { ids: string[]; tenant: string | null; reason: string | null }) => sql`
  with gone as (
    delete from holdfast.live_job as job
    where job.id = any(${p.ids}::uuid[])
      and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and ${legal('cancel')}
    returning job.*
  ),
  kept as (
    insert into holdfast.finished_job (id, kind, queue, tenant, state, stage, attempt, failures, crashes, crash_budget, priority, submitted_at, finished_at, error)
    select id, kind, queue, tenant, ${target('cancel')}, stage, attempt, failures, crashes, crash_budget, priority, submitted_at, now(),
      json_build_object('code', 'job_cancelled', 'message', coalesce(${p.reason}::text, 'The job was cancelled.'))
    from gone
  ),
  announced as (
    insert into holdfast.event (type, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf('cancel')}, id, kind, tenant, session_id, attempt, stage,
      case when ${p.reason}::text is not null then json_build_object('reason', ${p.reason}::text) end
    from gone
  )
  select id, case when session_id is not null then pg_notify('holdfast_abort', session_id::text) end as told
  from gone`,
)

/** Sends final jobs round again, from the stage they stopped at or from the start. Their attempts go on counting. */
export const redoJobs = statement<{ id: string }>()(
  'job.redo',
  (p: { ids: string[]; tenant: string | null; isFromStart: boolean }) => sql`
  with back as (
    delete from holdfast.finished_job as job
    where job.id = any(${p.ids}::uuid[])
      and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and ${legal('redo')}
    returning job.*, case when ${p.isFromStart}::boolean then 0::smallint else job.stage end as from_stage
  ),
  cleared as (
    delete from holdfast.stage_output as output
    using back
    where output.job_id = back.id and output.stage >= back.from_stage
  ),
  announced as (
    insert into holdfast.event (type, job_id, kind, tenant, attempt, stage)
    select ${eventOf('redo')}, id, kind, tenant, attempt, from_stage
    from back
  )
  insert into holdfast.live_job (id, kind, queue, tenant, state, stage, attempt, priority, crash_budget, submitted_at, run_at)
  select id, kind, queue, tenant, ${target('redo')}, from_stage, attempt, priority, crash_budget, submitted_at, now()
  from back
  returning id, ${wakeIdle} as woken`,
)
