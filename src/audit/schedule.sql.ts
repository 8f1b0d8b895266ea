import { sql } from '../postgres/sql.ts'
import { check, lacks, past } from './check.sql.ts'

/** The checks of schedules. */
export const scheduleChecks = {
  'due-slot-is-decided': check(
    'due_slot_is_decided',
    (p) => sql`
    select schedule.tenant || '/' || schedule.name, format('its slot of %s is due and not decided%s', schedule.next_at, coalesce(': ' || left(schedule.problem, 500), ''))
    from holdfast.schedule
    where schedule.next_at < ${past(p)} and schedule.paused_at is null and schedule.removed_at is null
      and exists (select from holdfast.leader where lease_until > now() and acquired_at < ${past(p)})
    union all
    select schedule.tenant || '/' || schedule.name, format('will never be looked at, although its next slot is %s', schedule.next_at)
    from holdfast.schedule
    where (schedule.next_at is null) <> (schedule.due_at is null)`,
  ),
  'one-job-per-slot': check(
    'one_job_per_slot',
    (p) => sql`
    select slot.job_id::text, format('is the job of %s slots', count(*))
    from (select * from holdfast.schedule_slot where job_id is not null order by decided_at desc limit ${p.latest}::bigint) as slot
    group by slot.job_id
    having count(*) > 1`,
  ),
  'slot-history-is-consistent': check(
    'slot_history_is_consistent',
    (p) => sql`
    select slot.tenant || '/' || slot.name, format('its slot of %s is %s %s', slot.slot_at, slot.what, case when slot.job_id is null then 'without a job' else 'with a job' end)
    from (select * from holdfast.schedule_slot order by decided_at desc limit ${p.latest}::bigint) as slot
    where (slot.job_id is not null) <> (slot.what in ('submitted', 'triggered', 'backfilled'))
    union all
    select schedule.tenant || '/' || schedule.name, format('says that its last slot was %s, but its history does not', schedule.last_slot_at)
    from holdfast.schedule
    where schedule.last_slot_at > now() - interval '1 day' and schedule.decided < 1000
      and ${lacks(sql`holdfast.schedule_slot as slot where slot.tenant = schedule.tenant and slot.name = schedule.name and slot.slot_at = schedule.last_slot_at`)}
    union all
    select schedule.tenant || '/' || schedule.name, format('its next slot, %s, is not after its last one, %s', schedule.next_at, schedule.last_slot_at)
    from holdfast.schedule
    where schedule.next_at <= schedule.last_slot_at and schedule.updated_at < schedule.last_slot_at`,
  ),
}
