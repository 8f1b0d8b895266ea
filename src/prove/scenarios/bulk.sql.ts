import { sql, statement } from '../../postgres/sql.ts'

/** Inserts finished jobs that no process has submitted, one of them with a webhook that is not due for long. */
export const leaveFinished = statement<never>()(
  'prove.leave_finished',
  () => sql`
  with job as (
    insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
    select holdfast.fresh_id(), now(), 3, 2, 'leftover', 'gone', 'default', 'null'
    from generate_series(1, 3)
    returning id
  ),
  outcome as (
    insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant)
    select id, now(), 1, 0, 0, 0, false, 'succeeded', 'leftover', 'default'
    from job
  )
  insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, next_at, job_id)
  select 0, 'evt__bulk', 'job.finished', 'default', 'leftover', 'pending', '{}', now() + interval '1 day', id
  from job
  limit 1`,
)

/** Removes that webhook. */
export const dropPending = statement<never>()(
  'prove.drop_pending',
  () => sql`
  delete from holdfast.delivery where lane = 'leftover'`,
)

/** How a bulk operation stands. */
export const bulkProgress = statement<{ state: string; done: number; skipped: number }>()(
  'prove.bulk_progress',
  (p: { id: string }) => sql`
  select state, done, skipped
  from holdfast.bulk
  where id = ${p.id}::uuid`,
)

/** Events that a bulk operation wrote about its jobs, more than one of the same type for a job. */
export const doubleActs = statement<{ job_id: string; type: string; bulk: string }>()(
  'prove.double_acts',
  () => sql`
  select job_id, type, data ->> 'bulk' as bulk
  from holdfast.event_log
  where job_id is not null and data ->> 'bulk' is not null
  group by job_id, type, data ->> 'bulk'
  having count(*) > 1`,
)
