/**
 * Ticks. The invariant: a slot is decided once, with one job at most. The row of the schedule keeps it: a tick locks the row, compares its
 * revision and its next slot with what the ticker saw, and moves it to the slot after that, in the statement that inserts the job. Two tickers
 * that saw the same slot: the second finds another next slot, or skips a row that the first has locked, and does nothing. The job's id follows
 * from the slot, so not even a schedule that was removed and set again submits a slot twice.
 *
 * A process that dies before its tick commits has done nothing, and every other process with a reaper ticks too. What must happen after a
 * tick is on the row: a buffered slot, and jobs to cancel.
 */
import type { MissedMode } from '../job/schedule.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import { hasCancels, isBuffered, isLastLive, runAt, slotId, submitting } from './submitting.sql.ts'

/** How many slots of a schedule are kept in its history. */
export const keptSlots = 1_000
/** After how many decisions a history is cut. */
const cutEvery = 100

/** What there is to do. */
export interface LookRow {
  /** How long until the next schedule is due; negative if one is; null if there is none. */
  next_ms: number | null
  has_buffered: boolean
  has_cancels: boolean
}

const since = (withinMs: number | null) => sql`coalesce(now() - ${withinMs}::float8 * interval '1 ms', '-infinity')`

/** Whether schedules are due, and have been so for less than that, or were left unfinished. */
export const lookAtSchedules = statement<LookRow>()(
  'schedule.look',
  (p: { withinMs: number }) => sql`
  select (
      select (extract(epoch from schedule.due_at - now()) * 1000)::float8
      from holdfast.schedule
      where schedule.due_at is not null and schedule.paused_at is null and schedule.due_at > ${since(p.withinMs)}
      order by schedule.due_at
      limit 1
    ) as next_ms,
    exists (select from holdfast.schedule where ${isBuffered}) as has_buffered,
    exists (select from holdfast.schedule where ${hasCancels}) as has_cancels`,
)

/** A schedule that is due, by the clock of the database. */
export interface DueRow {
  now: Date
  tenant: string
  name: string
  revision: number
  cron: string | null
  every_ms: number | null
  tz: string
  starts_at: Date | null
  ends_at: Date | null
  missed: MissedMode
  missed_window_ms: number
  missed_cap: number
  next_at: Date
  last_job_id: string | null
}

/**
 * Schedules that have been due for at least `lagMs`, and less than `withinMs` if that is given, the longest first; or one of them. Rows that
 * another transaction has locked are skipped, so that they hold up no other. The locks end with the statement.
 */
export const dueSchedules = statement<DueRow>()(
  'schedule.due',
  (p: {
    lagMs: number
    withinMs?: number | null
    limit: number
    only?: { tenant: string; name: string } | null
  }) => sql`
  select now() as now, tenant, name, revision, cron, every_ms, tz, starts_at, ends_at, missed, missed_window_ms, missed_cap, next_at, last_job_id
  from holdfast.schedule
  where due_at is not null and paused_at is null and due_at <= now() - ${p.lagMs}::float8 * interval '1 ms' and due_at > ${since(p.withinMs ?? null)}
    and (${p.only?.tenant ?? null}::text is null or (tenant, name) = (${p.only?.tenant ?? null}::text, ${p.only?.name ?? null}::text))
  order by due_at
  limit ${p.limit}::int
  for no key update skip locked`,
)

/** What to do with the next slot of a schedule. */
export interface Step {
  tenant: string
  name: string
  revision: number
  /** The slot that the schedule is at. */
  expectedAt: Date
  /** The last job that the ticker saw. Whether it is live is asked by the snapshot of the tick, which may not see a later one. */
  lastJobId: string | null
  /** The slot to run; null if it only skips some. */
  slotAt: Date | null
  /** The slot after it; null if there is none. */
  nextAt: Date | null
  /** The slots before it that were missed. */
  skipped: { from: Date; to: Date; count: number; reason: string } | null
}

/** What a tick did with a slot. */
export interface TickedRow {
  tenant: string
  name: string
  /** Null if it only skipped missed slots. */
  what: 'submitted' | 'skipped' | 'buffered' | null
  job_id: string | null
  /** How long after its slot it was decided. */
  late_ms: number | null
  /** How many missed slots it skipped. */
  missed: number
}

/** A time as text, for a list of times. */
export const iso = (at: Date | null | undefined) => at?.toISOString() ?? null

function givenSteps({ steps }: { steps: readonly Step[] }): Sql {
  return sql`unnest(
      ${steps.map(({ tenant }) => tenant)}::text[], ${steps.map(({ name }) => name)}::text[], ${steps.map(({ revision }) => revision)}::bigint[],
      ${steps.map(({ expectedAt }) => iso(expectedAt))}::timestamptz[], ${steps.map(({ lastJobId }) => lastJobId)}::uuid[], ${steps.map(({ slotAt }) => iso(slotAt))}::timestamptz[],
      ${steps.map(({ nextAt }) => iso(nextAt))}::timestamptz[], ${steps.map(({ skipped }) => iso(skipped?.from))}::timestamptz[],
      ${steps.map(({ skipped }) => iso(skipped?.to))}::timestamptz[], ${steps.map(({ skipped }) => skipped?.count ?? 0)}::int[],
      ${steps.map(({ skipped }) => skipped?.reason ?? null)}::text[]
    ) as given (tenant, name, revision, expected_at, seen_job_id, slot_at, then_at, skipped_from, skipped_to, skipped, why_skipped)`
}

/**
 * The schedules that are still where the ticker saw them, locked. Each is found by its key, or a plan might read all of them. A row written by
 * hand may have a finer time than a ticker can see.
 */
const held = (p: { steps: readonly Step[] }) => sql`
    select schedule.*, given.slot_at, given.then_at, given.skipped_from, given.skipped_to, given.skipped, given.why_skipped
    from ${givenSteps(p)}
    cross join lateral (
      select schedule.*
      from holdfast.schedule
      where schedule.tenant = given.tenant and schedule.name = given.name and schedule.revision = given.revision
        and date_trunc('milliseconds', schedule.next_at) = given.expected_at and schedule.paused_at is null
        and schedule.last_job_id is not distinct from given.seen_job_id
      for no key update skip locked
    ) as schedule`

/**
 * What each slot comes to, by whether the job of an earlier slot is live. If that job has ended, and a slot waits for it, that slot goes first:
 * this one is left until it has been submitted.
 */
const judged = sql`
    select judged.*, case when judged.what = 'submitted' then judged.own_id end as job_id, ${runAt('judged', 'judged.slot_at', 'judged.own_id')} as run_at
    from (
      select seen.*, ${slotId('seen', 'seen.slot_at')} as own_id,
        case when seen.slot_at is null then null when not seen.is_live or seen.overlap in ('allow', 'cancel') then 'submitted'
          when seen.overlap = 'buffer' and seen.buffered_at is null then 'buffered' else 'skipped' end as what
      from (select held.*, ${isLastLive('held')} as is_live from held) as seen
      where seen.is_live or seen.buffered_at is null
    ) as judged`

/** `decided`: what happened. A job that exists already was submitted by somebody else. */
const decided = raw(`
    select judged.*, submitted.id is not null as is_new,
      case when judged.what = 'submitted' and submitted.id is null then 'skipped' else judged.what end as outcome,
      case when judged.what = 'submitted' and submitted.id is null then 'the job of this slot exists already'
        when judged.what = 'submitted' and judged.is_live and judged.overlap = 'cancel' then format('replaces job %s', judged.last_job_id)
        when judged.what = 'buffered' then format('waits until job %s has ended', judged.last_job_id)
        when judged.what = 'skipped' and judged.overlap = 'buffer' then format('job %s has not ended, and another slot waits for that', judged.last_job_id)
        when judged.what = 'skipped' then format('job %s has not ended', judged.last_job_id) end as reason
    from judged
    left join submitted on submitted.id = judged.job_id`)

const moved = raw(`
    update holdfast.schedule
    set next_at = decided.then_at, due_at = decided.then_at, failures = 0, problem = null,
      last_slot_at = coalesce(decided.slot_at, schedule.last_slot_at),
      last_job_id = case when decided.is_new then decided.job_id else schedule.last_job_id end,
      buffered_at = case when decided.what = 'buffered' then decided.slot_at else schedule.buffered_at end,
      cancel_job_ids = case when decided.is_new and decided.is_live and decided.overlap = 'cancel'
        then array_append(schedule.cancel_job_ids, schedule.last_job_id) else schedule.cancel_job_ids end,
      decided = schedule.decided + 1
    from decided
    where schedule.tenant = decided.tenant and schedule.name = decided.name
    returning schedule.tenant, schedule.name, schedule.decided`)

/** Writes history. A slot that failed or was buffered has a row already; one that has a job keeps it. */
export const writeSlots = raw(`
    on conflict (tenant, name, slot_at) do update
    set what = excluded.what, reason = excluded.reason, job_id = excluded.job_id, until_at = excluded.until_at, slots = excluded.slots, decided_at = now()
    where schedule_slot.job_id is null`)

const noted = sql`
    insert into holdfast.schedule_slot (tenant, name, slot_at, what, reason, job_id, until_at, slots)
    select tenant, name, slot_at, outcome, reason, case when is_new then job_id end, null, 1
    from decided
    where slot_at is not null
    union all
    select tenant, name, skipped_from, 'skipped', why_skipped, null, skipped_to, skipped
    from decided
    where skipped > 0
    ${writeSlots}`

/** Cuts long histories, now and then. Rows that another transaction has locked stay. */
const cut = raw(`
    delete from holdfast.schedule_slot
    where schedule_slot.ctid = any(array(
      select old.place
      from moved
      cross join lateral (
        select slot.slot_at
        from holdfast.schedule_slot as slot
        where slot.tenant = moved.tenant and slot.name = moved.name
        order by slot.slot_at desc
        offset ${keptSlots}
        limit 1
      ) as edge
      cross join lateral (
        select slot.ctid as place
        from holdfast.schedule_slot as slot
        where slot.tenant = moved.tenant and slot.name = moved.name and slot.slot_at <= edge.slot_at
        order by slot.slot_at
        limit ${keptSlots}
        for update skip locked
      ) as old
      where moved.decided % ${cutEvery} = 0
    ))`)

/** Decides slots, many at a time. A schedule that is missing from the answer was decided, changed or locked by another, or has a slot that goes first. */
export const tickSchedules = statement<TickedRow>()(
  'schedule.tick',
  (p: { steps: readonly Step[] }) => sql`
  with held as materialized (${held(p)}
  ),
  judged as materialized (${judged}
  ),
  ${submitting('judged')},
  decided as materialized (${decided}
  ),
  moved as (${moved}
  ),
  noted as (${noted}
  ),
  cut as (${cut}
  )
  select tenant, name, outcome as what, case when is_new then job_id end as job_id,
    (extract(epoch from clock_timestamp() - slot_at) * 1000)::float8 as late_ms, skipped as missed, case when is_new then ${wakeIdle} end as woken
  from decided`,
)
