import { sql, statement } from '../postgres/sql.ts'
import { hasCancels } from './submitting.sql.ts'
import { iso, writeSlots } from './tick.sql.ts'

/** A slot that could not be decided. */
export interface FailedStep {
  tenant: string
  name: string
  revision: number
  slotAt: Date | null
  problem: string
  /** Whether a row that it needs is locked: then it is only put off, and nothing is said in its history. */
  isHeld: boolean
}

/** Notes that slots could not be decided, and when to try again: after a second, then after twice as long, up to a minute. */
export const failSchedules = statement<{ name: string }>()(
  'schedule.fail',
  (p: { steps: readonly FailedStep[] }) => sql`
  with failed as (
    update holdfast.schedule
    set failures = schedule.failures + 1, problem = given.problem, due_at = now() + least(60, power(2, least(schedule.failures, 6))) * interval '1 s'
    from unnest(
      ${p.steps.map(({ tenant }) => tenant)}::text[], ${p.steps.map(({ name }) => name)}::text[], ${p.steps.map(({ revision }) => revision)}::bigint[],
      ${p.steps.map(({ slotAt }) => iso(slotAt))}::timestamptz[], ${p.steps.map(({ problem }) => problem)}::text[],
      ${p.steps.map(({ isHeld }) => isHeld)}::boolean[]
    ) as given (tenant, name, revision, slot_at, problem, is_held)
    where schedule.tenant = given.tenant and schedule.name = given.name and schedule.revision = given.revision
      and date_trunc('milliseconds', schedule.next_at) = given.slot_at and schedule.due_at <= now()
    returning schedule.tenant, schedule.name, given.slot_at, given.problem, given.is_held
  )
  insert into holdfast.schedule_slot (tenant, name, slot_at, what, reason)
  select tenant, name, slot_at, 'failed', problem
  from failed
  where not is_held
  ${writeSlots}
  returning name`,
)

/** Jobs that a later slot replaced. In any order, so that none that can't be cancelled keeps others waiting. */
export const replacedJobs = statement<{ tenant: string; name: string; job_id: string }>()(
  'schedule.replaced',
  (p: { limit: number }) => sql`
  select schedule.tenant, schedule.name, replaced.job_id
  from holdfast.schedule
  cross join unnest(schedule.cancel_job_ids) as replaced (job_id)
  where ${hasCancels}
  order by random()
  limit ${p.limit}::int`,
)

/** Whether a removed schedule is there only because of this job. */
const isLeftFor = (jobId: string) =>
  sql`(schedule.removed_at is not null and schedule.declared is null and schedule.cancel_job_ids = array[${jobId}::uuid])`

/** Notes that a replaced job was cancelled, or had ended. A removed schedule whose last such job this was goes with it. */
export const forgetReplaced = statement<never>()(
  'schedule.forget_replaced',
  (p: { tenant: string; name: string; jobId: string }) => sql`
  with gone as (
    delete from holdfast.schedule
    where schedule.tenant = ${p.tenant}::text and schedule.name = ${p.name}::text and ${isLeftFor(p.jobId)}
  )
  update holdfast.schedule
  set cancel_job_ids = array_remove(cancel_job_ids, ${p.jobId}::uuid)
  where schedule.tenant = ${p.tenant}::text and schedule.name = ${p.name}::text and ${p.jobId}::uuid = any(schedule.cancel_job_ids) and not ${isLeftFor(p.jobId)}`,
)

/** Removes old history. */
export const forgetSlots = statement<{ name: string }>()(
  'slot.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.schedule_slot
  where (tenant, name, slot_at) in (
    select tenant, name, slot_at
    from holdfast.schedule_slot
    where decided_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by decided_at
    limit ${p.limit}
  ) and decided_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
  returning name`,
)
