import { sql, statement } from '../postgres/sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import { announcing, isIt, type Which } from './schedule.sql.ts'
import { isLastLive, slotId, submitting } from './submitting.sql.ts'

/**
 * Submits a job now, beside the slots. It counts as the last one, unless the job of a slot is still running: that is the one which overlaps.
 * No row back: its last job is another one than the caller saw, or there is no such schedule.
 */
export const triggerSchedule = statement<{ job_id: string }>()(
  'schedule.trigger',
  (p: Which & { lastJobId: string | null; jobId: string; by: string | null }) => sql`
  with held as materialized (
    select schedule.*, ${p.jobId}::uuid as job_id, now() as run_at
    from holdfast.schedule
    where ${isIt(p)} and schedule.last_job_id is not distinct from ${p.lastJobId}::uuid
    for no key update
  ),
  ${submitting('held')},
  changed as (
    update holdfast.schedule
    set last_job_id = case when ${isLastLive('held')} then schedule.last_job_id else held.job_id end, revision = schedule.revision + 1
    from held
    where schedule.tenant = held.tenant and schedule.name = held.name
    returning schedule.*
  ),
  noted as (
    insert into holdfast.schedule_slot (tenant, name, slot_at, what, job_id, by)
    select tenant, name, clock_timestamp(), 'triggered', job_id, ${p.by}::text
    from held
    on conflict (tenant, name, slot_at) do nothing
  ),
  ${announcing('schedule.triggered', p.by, sql`, 'job', ${p.jobId}::uuid`)}
  select job_id, ${wakeIdle} as woken
  from held`,
)

/** Submits past slots, all in one statement. Slots whose job exists are left out. */
export const backfillSchedule = statement<{ job_id: string }>()(
  'schedule.backfill',
  (p: Which & { slots: readonly Date[]; by: string | null }) => sql`
  with changed as materialized (
    select schedule.*
    from holdfast.schedule
    where ${isIt(p)}
    for no key update
  ),
  past as materialized (
    select changed.*, given.slot_at, ${slotId('changed', 'given.slot_at')} as job_id, now() as run_at
    from changed
    cross join unnest(${p.slots.map((slot) => slot.toISOString())}::timestamptz[]) as given (slot_at)
  ),
  ${submitting('past')},
  noted as (
    insert into holdfast.schedule_slot (tenant, name, slot_at, what, job_id, by)
    select past.tenant, past.name, past.slot_at, 'backfilled', past.job_id, ${p.by}::text
    from past
    join submitted on submitted.id = past.job_id
    on conflict (tenant, name, slot_at) do update
    set what = excluded.what, reason = null, job_id = excluded.job_id, until_at = null, slots = 1, decided_at = now(), by = excluded.by
  ),
  ${announcing('schedule.backfilled', p.by, sql`, 'from', ${p.slots[0] ?? null}::timestamptz, 'to', ${p.slots.at(-1) ?? null}::timestamptz, 'slots', ${p.slots.length}::int`)}
  select submitted.id as job_id, ${wakeIdle} as woken
  from submitted`,
)

/** What became of a slot. */
export interface SlotRow {
  slot_at: Date
  what: 'submitted' | 'skipped' | 'buffered' | 'failed' | 'triggered' | 'backfilled'
  reason: string | null
  job_id: string | null
  until_at: Date | null
  slots: number
  decided_at: Date
  by: string | null
}

/** The history of a schedule, latest first. It outlives the schedule. */
export const listSlots = statement<SlotRow>()(
  'slot.list',
  (p: Which & { before: Date | null; limit: number }) => sql`
  select slot_at, what, reason, job_id, until_at, slots, decided_at, by
  from holdfast.schedule_slot
  where tenant = ${p.tenant}::text and name = ${p.name}::text and slot_at < coalesce(${p.before}::timestamptz, 'infinity')
  order by slot_at desc
  limit ${p.limit}`,
)
