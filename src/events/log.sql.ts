import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { fromLog } from '../transitions/event-log.sql.ts'
import { isItem, itemOf } from '../transitions/wanted-events.sql.ts'
import type { EventRow } from './event.ts'

/** `isBare`: without the data, which may be unreadable. */
const columns = (p: { isBare?: boolean }) => sql`seq, at, type, state, job_id, kind, tenant, session_id, attempt, stage,
    case when ${p.isBare === true}::boolean then null else data end as data`
/** Only readers that include items get them, and pay for the lookup. */
const itemIf = (isWanted: Sql, event: string) => sql`case when ${isWanted} then ${itemOf(event)} end as item`
const fitsItem = (isWanted: Sql, event: string) => sql`(${isWanted} or not ${raw(isItem(event))})`

/** Whose events to read. */
export interface ReadBy {
  group: string
  partition: number
  partitions: number
}

/**
 * The events of one partition of a group, in order. `upTo` is at most the horizon, and at most one window ahead. A group that was just removed
 * wants no events; without the check it would get all, because it has no types.
 */
export const readEvents = statement<EventRow>()(
  'event.read',
  (p: ReadBy & { after: number; upTo: number; limit: number; isBare?: boolean }) => sql`
  select ${columns(p)}, ${itemIf(sql`(not ${p.isBare === true}::boolean and ${wantsItems(p.group)})`, 'event')}
  from holdfast.event
  where seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
    and exists (select from holdfast.event_group where name = ${p.group})
    and coalesce(type = any((select types from holdfast.event_group where name = ${p.group})::text[]), true)
    and ${fitsItem(wantsItems(p.group), 'event')}
    and (${p.partitions}::int = 1 or (uuid_hash(coalesce(job_id, '00000000-0000-0000-0000-000000000000')) & 2147483647) % ${p.partitions}::int = ${p.partition}::int)
  order by seq
  limit ${p.limit}`,
)

function wantsItems(group: string): Sql {
  return sql`(select items from holdfast.event_group where name = ${group})`
}

/** Which events to return; null means any. */
export interface BrowseFilter {
  types: string[] | null
  tenant: string | null
  jobId: string | null
  /** Whether to include events of fan-out items. */
  items: boolean
}

const isWanted = (p: BrowseFilter) => sql`(${p.types}::text[] is null or type = any(${p.types}))
    and (${p.tenant}::text is null or tenant = ${p.tenant})`

/** The part of the log to search, and the maximum number of events. */
interface BrowseRange extends BrowseFilter {
  after: number
  upTo: number
  limit: number
  isBare?: boolean
}

/** A matching event, and how far the scan got: null if it covered the whole range. Without a seq, no event matches. */
export type BrowsedRow = Omit<EventRow, 'seq'> & { seq: number | null; reached: number | null }

/**
 * Events after a position in the log, without a group. It scans at most `most` rows, so that rare events cost no more than frequent ones: a
 * caller that finds too few continues after `reached`.
 */
export const browseEvents = statement<BrowsedRow>()('event.browse', (p: BrowseRange & { most: number }) =>
  browsing(p, sql`holdfast.events_after(${p.after}::bigint, ${p.upTo}::bigint, ${p.most}::int)`),
)

/** The same for one tenant, by an index, so that the events of other tenants don't matter. The index leaves out the tenant `default`. */
export const browseTenantEvents = statement<BrowsedRow>()('event.browse_tenant', (p: BrowseRange & { most: number }) =>
  browsing(p, sql`holdfast.events_of_tenant(${p.tenant}, ${p.after}::bigint, ${p.upTo}::bigint, ${p.most}::int)`),
)

/** The matching events among those scanned. All scanned rows are read in full, so scan few. */
function browsing(p: BrowseRange & { most: number }, from: Sql): Sql {
  return sql`
  with scanned as materialized (
    select ${columns(p)}
    from ${from}
  )
  select fitting.*, edge.reached
  from (select case when count(*) >= ${p.most}::int then max(seq) end as reached from scanned) as edge
  left join (
    select scanned.*, ${itemIf(sql`(${p.items}::boolean and not ${p.isBare === true}::boolean)`, 'scanned')}
    from scanned
    where ${isWanted(p)} and ${fitsItem(sql`${p.items}::boolean`, 'scanned')}
    order by scanned.seq
    limit ${p.limit}
  ) as fitting on true
  order by fitting.seq`
}

/** The events of one job after a position in the log. They have an index of their own, so the rest of the log doesn't matter. */
export const browseJobEvents = statement<EventRow>()(
  'event.browse_job',
  (p: BrowseRange) => sql`
  select told.*, ${itemIf(sql`not ${p.isBare === true}::boolean`, 'told')}
  from (
    select ${columns(p)}
    from holdfast.event
    where job_id = ${p.jobId}::uuid and seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
    offset 0
  ) as told
  where ${isWanted(p)}
  order by seq
  limit ${p.limit}`,
)

/** The position in the log with `back` matching events after it, or the one `most` events before the end. */
export const placeBeforeEnd = statement<{ seq: number }>()(
  'event.place_before_end',
  (p: BrowseFilter & { upTo: number; back: number; most: number }) => sql`
  select coalesce(min(seq) - 1, ${p.upTo}::bigint) as seq
  from (
    select seq
    from (
      select seq, type, tenant, job_id
      from (${fromLog(sql`where event.seq <= ${p.upTo}::bigint order by event.seq desc limit ${p.most}::int`)}
      ) as latest
      order by seq desc
      limit ${p.most}::int
    ) as scanned
    where ${isWanted(p)} and ${fitsItem(sql`${p.items}::boolean`, 'scanned')}
    limit ${p.back}
  ) as last`,
)

/** The same for the events of one job. */
export const placeBeforeEndOfJob = statement<{ seq: number }>()(
  'event.place_before_end_job',
  (p: BrowseFilter & { upTo: number; back: number }) => sql`
  select coalesce(min(seq) - 1, ${p.upTo}::bigint) as seq
  from (
    select seq
    from (select seq, type, tenant from holdfast.event where job_id = ${p.jobId}::uuid and seq <= ${p.upTo}::bigint offset 0) as told
    where ${isWanted(p)}
    order by seq desc
    limit ${p.back}
  ) as last`,
)

/**
 * The position in the log before the first event at this time or later. Numbers and times grow together, except for long transactions. So a
 * binary search finds the position ten minutes earlier, and a scan from there finds the event.
 */
export const placeAtTime = statement<{ seq: number }>()(
  'event.place_at_time',
  (p: { at: Date; upTo: number }) => sql`
  with recursive half (low, high) as (
    select 0::bigint, ${p.upTo}::bigint
    union all
    select coalesce(earlier.seq, half.low), case when earlier.seq is null then (half.low + half.high) / 2 else half.high end
    from half
    left join lateral (
      select first.seq
      from holdfast.events_after((half.low + half.high) / 2, half.high, 1) as first
      where first.at < ${p.at}::timestamptz - interval '10 min'
    ) as earlier on true
    where half.low < half.high
  )
  select coalesce((
    select min(seq) - 1
    from (${fromLog(sql`
      where event.seq > (select max(low) from half) and event.seq <= ${p.upTo}::bigint and event.at >= ${p.at}::timestamptz
      order by event.seq
      limit 1`)}
    ) as first
  ), ${p.upTo}::bigint) as seq`,
)
