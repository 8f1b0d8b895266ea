/**
 * Slots that wait for the job of an earlier one (`overlap: 'buffer'`). Whether that job has ended is asked by the snapshot of a statement, so
 * the statement that submits the slot compares the job with the one that was asked about: a job that a trigger has put in its place meanwhile
 * may be invisible to it.
 */
import { sql, statement } from '../postgres/sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import { isBuffered, isLastLive, slotId, submitting } from './submitting.sql.ts'
import { type TickedRow, writeSlots } from './tick.sql.ts'

/** A schedule whose buffered slot waits no longer. */
export interface Releasable {
  tenant: string
  name: string
  last_job_id: string | null
  revision: number
  next_at: Date | null
}

/** Schedules whose buffered slot waits for a job that has ended. In any order, so that none that can't be released keeps others waiting. */
export const releasableSchedules = statement<Releasable>()(
  'schedule.releasable',
  (p: { limit: number }) => sql`
  select schedule.tenant, schedule.name, schedule.last_job_id, schedule.revision, schedule.next_at
  from holdfast.schedule
  where ${isBuffered} and not ${isLastLive('schedule')}
  order by random()
  limit ${p.limit}::int`,
)

/** Submits buffered slots. A schedule that is missing from the answer was released, changed or locked by another. */
export const releaseBuffered = statement<TickedRow>()(
  'schedule.release',
  (p: { of: readonly Releasable[] }) => sql`
  with held as materialized (
    select schedule.*
    from unnest(
      ${p.of.map(({ tenant }) => tenant)}::text[], ${p.of.map(({ name }) => name)}::text[], ${p.of.map(({ last_job_id }) => last_job_id)}::uuid[]
    ) as given (tenant, name, seen_job_id)
    cross join lateral (
      select schedule.*
      from holdfast.schedule
      where schedule.tenant = given.tenant and schedule.name = given.name and schedule.last_job_id is not distinct from given.seen_job_id
        and schedule.buffered_at is not null and schedule.paused_at is null
      for no key update skip locked
    ) as schedule
  ),
  freed as materialized (
    select held.*, ${slotId('held', 'held.buffered_at')} as job_id, now() as run_at
    from held
  ),
  ${submitting('freed')},
  moved as (
    update holdfast.schedule
    set buffered_at = null, last_job_id = freed.job_id
    from freed
    where schedule.tenant = freed.tenant and schedule.name = freed.name
  ),
  noted as (
    insert into holdfast.schedule_slot (tenant, name, slot_at, what, reason, job_id)
    select tenant, name, buffered_at, 'submitted', 'waited for the job of an earlier slot', job_id
    from freed
    ${writeSlots}
  )
  select tenant, name, 'submitted' as what, job_id, null::float8 as late_ms, 0 as missed, ${wakeIdle} as woken
  from freed`,
)
