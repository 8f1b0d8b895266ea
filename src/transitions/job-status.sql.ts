import { sql, statement, target } from '../postgres/sql.ts'
import { heldPlace } from './leases.sql.ts'

/** Defines the view of every job with its state, which follows from the table that the job is in. */
export const statusDefinition = statement<never>()(
  'define.job_status',
  () => sql`
  create or replace view holdfast.job_status as
  select job.id, job.kind, job.queue, job.tenant,
    coalesce(outcome.state, case when ready.job_id is not null then ${target('submit')} when waiting.job_id is not null then ${target('fanOut')}
      else ${target('claim')} end) as state,
    coalesce(outcome.stage, ready.stage, waiting.stage, held.stage) as stage,
    coalesce(outcome.attempt, ready.attempt, waiting.attempt, held.attempt) as attempt,
    coalesce(outcome.failures, ready.failures, waiting.failures, held.failures) as failures,
    coalesce(outcome.crashes, ready.crashes, waiting.crashes, held.crashes) as crashes,
    job.crash_budget, coalesce(ready.priority, job.priority) as priority, job.submitted_at, ready.run_at, held.deadline_at, held.session_id,
    outcome.finished_at, outcome.error, job.barrier_id, job.position, job.is_part,
    coalesce(outcome.is_flawed, ready.is_flawed, waiting.is_flawed, held.is_flawed) as is_flawed, job.item_key, job.input
  from holdfast.job
  left join holdfast.outcome on outcome.job_id = job.id
  left join holdfast.ready on ready.job_id = job.id
  left join holdfast.waiting on waiting.job_id = job.id
  left join lateral ${heldPlace('case when outcome.job_id is null and ready.job_id is null and waiting.job_id is null then job.id end')} as held on true`,
)
