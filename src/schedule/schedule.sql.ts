import type { EventType } from '../job/event-type.ts'
import type { MissedMode, OverlapMode } from '../job/schedule.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import type { Definition } from './definition.ts'

/** One schedule. */
export interface Which {
  tenant: string
  name: string
}

/** A stored schedule. */
export interface ScheduleRow extends ListedRow {
  input: unknown
}

/** A stored schedule without its input. */
export interface ListedRow extends Which {
  kind: string
  priority: number | null
  cron: string | null
  every_ms: number | null
  tz: string
  jitter_ms: number
  starts_at: Date | null
  ends_at: Date | null
  missed: MissedMode
  missed_window_ms: number
  missed_cap: number
  overlap: OverlapMode
  next_at: Date | null
  buffered_at: Date | null
  last_slot_at: Date | null
  last_job_id: string | null
  paused_at: Date | null
  paused_by: string | null
  pause_reason: string | null
  declared: string | null
  edited_at: Date | null
  problem: string | null
  failures: number
  revision: number
  created_at: Date
  updated_at: Date
  updated_by: string | null
  /** The clock of the database. */
  now: Date
}

const listed =
  raw(`tenant, name, kind, priority, cron, every_ms, tz, jitter_ms, starts_at, ends_at, missed, missed_window_ms, missed_cap, overlap,
    next_at, buffered_at, last_slot_at, last_job_id, paused_at, paused_by, pause_reason, declared, edited_at, problem, failures, revision, created_at,
    updated_at, updated_by, now() as now`)
const columns = sql`${listed}, input`

/** The row of a schedule that was not removed. */
export const isIt = (p: Which) =>
  sql`schedule.tenant = ${p.tenant}::text and schedule.name = ${p.name}::text and schedule.removed_at is null`

/** The event about the schedule in `changed`, written with the change. */
export const announcing = (type: EventType, by: string | null, more: Sql = raw('')): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${raw(`'${type}'`)}, tenant, json_strip_nulls(json_build_object('schedule', name, 'kind', kind, 'by', ${by}::text${more}))
    from changed
  )`

/** One schedule. */
export const getSchedule = statement<ScheduleRow>()(
  'schedule.get',
  (p: Which) => sql`
  select ${columns}
  from holdfast.schedule
  where ${isIt(p)}`,
)

/** The declaration that a schedule was last set by, even if it was removed since. */
export const getDeclared = statement<{ declared: string | null }>()(
  'schedule.declared',
  (p: Which) => sql`
  select declared
  from holdfast.schedule
  where schedule.tenant = ${p.tenant}::text and schedule.name = ${p.name}::text`,
)

interface Listing {
  kind: string | null
  /** The last one of the previous page. */
  after: Which
  limit: number
}

/** Schedules of all tenants, by tenant and name. */
export const listSchedules = statement<ListedRow>()(
  'schedule.list',
  (p: Listing) => sql`
  select ${listed}
  from holdfast.schedule
  where (tenant, name) > (${p.after.tenant}::text, ${p.after.name}::text) and (${p.kind}::text is null or kind = ${p.kind}) and removed_at is null
  order by tenant, name
  limit ${p.limit}`,
)

/** Schedules of one tenant, by name. */
export const listSchedulesOfTenant = statement<ListedRow>()(
  'schedule.list_tenant',
  (p: Listing & { tenant: string }) => sql`
  select ${listed}
  from holdfast.schedule
  where tenant = ${p.tenant}::text and name > ${p.after.name}::text and (${p.kind}::text is null or kind = ${p.kind}) and removed_at is null
  order by tenant, name
  limit ${p.limit}`,
)

/** The time, by the clock of the database. */
export const databaseTime = statement<{ now: Date }>()('schedule.now', () => sql`select now() as now`)

/** What to write, and over what. */
export interface SetParams extends Definition {
  nextAt: Date | null
  /** The revision that the caller saw; null if it saw none. Ignored for a declaration. */
  revision: number | null
  /** The checksum of a declaration in code; null if it is set at run time. */
  declared: string | null
  by: string | null
  most: number
}

const isSameTiming =
  raw(`schedule.removed_at is null and (schedule.cron, schedule.every_ms, schedule.tz, schedule.starts_at, schedule.ends_at)
        is not distinct from (excluded.cron, excluded.every_ms, excluded.tz, excluded.starts_at, excluded.ends_at)`)

/**
 * Sets a schedule. Its pause, its history and, if its timing is the same, its next slot stay. No row back: somebody else changed it meanwhile,
 * the tenant has reached its limit, or it was last set by the same declaration: then what was changed at run time since stays too.
 */
export const setSchedule = statement<ScheduleRow>()(
  'schedule.set',
  (p: SetParams) => sql`
  with changed as (
    insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, priority, input, cron, every_ms, tz, jitter_ms, starts_at, ends_at,
      missed, missed_window_ms, missed_cap, overlap, next_at, due_at, declared, updated_by)
    select ${p.tenant}::text, ${p.name}::text, ${p.kind}::text, ${p.queue}::text, ${p.crashBudget}::smallint, ${p.kindPriority}::smallint, ${p.priority}::smallint,
      ${p.input}::json, ${p.cron}::text, ${p.everyMs}::bigint, ${p.tz}::text, ${p.jitterMs}::bigint, ${p.startsAt}::timestamptz, ${p.endsAt}::timestamptz,
      ${p.missed}::text, ${p.missedWindowMs}::bigint, ${p.missedCap}::int, ${p.overlap}::text, ${p.nextAt}::timestamptz, ${p.nextAt}::timestamptz,
      ${p.declared}::text, ${p.by}::text
    where (exists (select from holdfast.schedule where schedule.tenant = ${p.tenant} and schedule.name = ${p.name})
      or (select count(*) from (select from holdfast.schedule where schedule.tenant = ${p.tenant} limit ${p.most}::int) as own) < ${p.most}::int)
      -- an upsert locks the row even if it changes nothing, and a locked row must not keep a worker from starting
      and not exists (
        select from holdfast.schedule where schedule.tenant = ${p.tenant} and schedule.name = ${p.name} and schedule.declared = ${p.declared}::text
      )
    on conflict (tenant, name) do update
    set kind = excluded.kind, queue = excluded.queue, crash_budget = excluded.crash_budget, kind_priority = excluded.kind_priority,
      priority = excluded.priority, input = excluded.input, cron = excluded.cron, every_ms = excluded.every_ms, tz = excluded.tz,
      jitter_ms = excluded.jitter_ms, starts_at = excluded.starts_at, ends_at = excluded.ends_at, missed = excluded.missed,
      missed_window_ms = excluded.missed_window_ms, missed_cap = excluded.missed_cap, overlap = excluded.overlap,
      next_at = case when ${isSameTiming} then schedule.next_at else excluded.next_at end,
      due_at = case when ${isSameTiming} then schedule.next_at else excluded.next_at end,
      declared = coalesce(excluded.declared, schedule.declared), edited_at = case when excluded.declared is null then now() end, removed_at = null,
      problem = null, failures = 0, revision = schedule.revision + 1, updated_at = now(), updated_by = excluded.updated_by
    where case when ${p.declared}::text is null then schedule.revision = ${p.revision}::bigint or (schedule.removed_at is not null and ${p.revision}::bigint is null)
      else schedule.declared is distinct from ${p.declared} end
    returning *
  ),
  ${announcing('schedule.set', p.by)}
  select ${columns}
  from changed`,
)

const asRemoved = raw(
  `removed_at = now(), next_at = null, due_at = null, buffered_at = null, revision = schedule.revision + 1`,
)

/**
 * Removes a schedule; its history and its jobs stay. The row of a declared one is kept as a mark, or the next deploy would set it again, and
 * so is the row of one that has yet to cancel jobs, until it has. No row back: there is none.
 */
export const removeSchedule = statement<{ name: string }>()(
  'schedule.remove',
  (p: Which & { by: string | null }) => sql`
  with changed as materialized (
    select schedule.*
    from holdfast.schedule
    where ${isIt(p)}
    for update
  ),
  gone as (
    delete from holdfast.schedule
    using changed
    where schedule.tenant = changed.tenant and schedule.name = changed.name and changed.declared is null and changed.cancel_job_ids = '{}'
  ),
  marked as (
    update holdfast.schedule
    set ${asRemoved}
    from changed
    where schedule.tenant = changed.tenant and schedule.name = changed.name and (changed.declared is not null or changed.cancel_job_ids <> '{}')
  ),
  ${announcing('schedule.removed', p.by)}
  select name
  from changed`,
)

/** Removes schedules of kinds that are no longer declared and were not changed at run time. */
export const undeclareSchedules = statement<{ tenant: string; name: string }>()(
  'schedule.undeclare',
  (p: { kinds: readonly string[]; kept: readonly Which[] }) => sql`
  with changed as materialized (
    select schedule.*
    from holdfast.schedule
    where schedule.kind = any(${p.kinds}::text[]) and schedule.declared is not null and (schedule.edited_at is null or schedule.removed_at is not null)
      and not exists (
        select
        from unnest(${p.kept.map(({ tenant }) => tenant)}::text[], ${p.kept.map(({ name }) => name)}::text[]) as kept (tenant, name)
        where kept.tenant = schedule.tenant and kept.name = schedule.name
      )
    for update skip locked
  ),
  gone as (
    delete from holdfast.schedule
    using changed
    where schedule.tenant = changed.tenant and schedule.name = changed.name and changed.cancel_job_ids = '{}'
  ),
  marked as (
    update holdfast.schedule
    set ${asRemoved}, declared = null
    from changed
    where schedule.tenant = changed.tenant and schedule.name = changed.name and changed.cancel_job_ids <> '{}'
  ),
  ${announcing('schedule.removed', 'deploy')}
  select tenant, name
  from changed`,
)

/** Pauses a schedule. A schedule that is paused stays paused since then. No row back: there is none. */
export const pauseSchedule = statement<ScheduleRow>()(
  'schedule.pause',
  (p: Which & { by: string | null; reason: string | null }) => sql`
  with changed as (
    update holdfast.schedule
    set paused_at = coalesce(paused_at, now()), paused_by = ${p.by}::text, pause_reason = ${p.reason}::text, revision = revision + 1
    where ${isIt(p)}
    returning *
  ),
  ${announcing('schedule.paused', p.by, sql`, 'reason', ${p.reason}::text`)}
  select ${columns}
  from changed`,
)

/** Resumes a schedule at its next slot; the slots of the pause are skipped. No row back: somebody else changed it meanwhile. */
export const resumeSchedule = statement<ScheduleRow>()(
  'schedule.resume',
  (
    p: Which & {
      by: string | null
      revision: number
      nextAt: Date | null
      skipped: { from: Date; to: Date; count: number } | null
    },
  ) => sql`
  with changed as (
    update holdfast.schedule
    set paused_at = null, paused_by = null, pause_reason = null, next_at = ${p.nextAt}::timestamptz, due_at = ${p.nextAt}::timestamptz, revision = revision + 1
    where ${isIt(p)} and paused_at is not null and revision = ${p.revision}::bigint
    returning *
  ),
  noted as (
    insert into holdfast.schedule_slot (tenant, name, slot_at, what, reason, until_at, slots)
    select tenant, name, ${p.skipped?.from ?? null}::timestamptz, 'skipped', 'the schedule was paused', ${p.skipped?.to ?? null}::timestamptz, ${p.skipped?.count ?? 0}::int
    from changed
    where ${p.skipped?.count ?? 0}::int > 0
    on conflict (tenant, name, slot_at) do nothing
  ),
  ${announcing('schedule.resumed', p.by)}
  select ${columns}
  from changed`,
)

/** How late the schedule that has been due the longest is. */
export const overdueSchedules = statement<{ count: number; overdue_ms: number }>()(
  'schedule.overdue',
  () => sql`
  select count(*)::int as count, coalesce(max(greatest(0, extract(epoch from now() - next_at) * 1000)), 0)::float8 as overdue_ms
  from (
    select next_at
    from holdfast.schedule
    -- one that could not be decided is looked at again within a minute
    where due_at <= now() + interval '1 minute' and paused_at is null and next_at <= now()
    limit 1000
  ) as due`,
)
