import { sql, statement } from '../../postgres/sql.ts'

/** Makes the next slot of a schedule due now. */
export const makeDue = statement<never>()(
  'prove.make_due',
  (p: { name: string }) => sql`
  update holdfast.schedule
  set next_at = date_trunc('milliseconds', clock_timestamp()), due_at = now()
  where name = ${p.name}::text and (next_at > now() or paused_at is not null)`,
)

/** Gives a schedule a pattern that cannot be read, as somebody can by hand. */
export const breakSchedule = statement<never>()(
  'prove.break_schedule',
  (p: { name: string; cron: string }) => sql`
  update holdfast.schedule
  set cron = ${p.cron}::text, every_ms = null
  where name = ${p.name}::text`,
)

/** Leaves history that should have been removed long ago. */
export const leaveOldSlots = statement<never>()(
  'prove.leave_old_slots',
  () => sql`
  insert into holdfast.schedule_slot (tenant, name, slot_at, what, decided_at)
  values ('default', 'old', now() - interval '400 days', 'skipped', now() - interval '400 days')`,
)

/** Whether something has yet to happen: slots that are due or come due soon, and old history. */
export const openSchedules = statement<{ is_open: boolean }>()(
  'prove.open_schedules',
  () => sql`
  select next_at <= now() + interval '1 minute' or buffered_at is not null or cancel_job_ids <> '{}' as is_open
  from holdfast.schedule
  union all
  select true
  from holdfast.schedule_slot
  where name = 'old'`,
)

/** What is wrong with the history: jobs without a slot, and slots without a job. */
export const wrongSlots = statement<{ problem: string }>()(
  'prove.wrong_slots',
  () => sql`
  select format('the slot %s of the schedule %s has no job', slot.slot_at, slot.name) as problem
  from holdfast.schedule_slot as slot
  where slot.job_id is not null and not exists (select from holdfast.job where job.id = slot.job_id)
  union all
  select format('job %s (%s) was submitted for no slot', job.id, job.kind)
  from holdfast.job
  where job.kind in ('scheduled', 'lengthy', 'replaceable') and not exists (select from holdfast.schedule_slot as slot where slot.job_id = job.id)`,
)
