import { raw, type Sql, sql, statement } from '../store/sql.ts'
import { isItem, itemOf } from '../store/wanted.sql.ts'
import type { EventRow } from './event.ts'

const columns = sql`seq, at, type, state, job_id, kind, tenant, session_id, attempt, stage, data`
/** Only whoever wants those of items is shown any, and pays for the look at each. */
const itemIf = (isWanted: Sql, event: string) => sql`case when ${isWanted} then ${itemOf(event)} end as item`
const fitsItem = (isWanted: Sql, event: string) => sql`(${isWanted} or not ${raw(isItem(event))})`

/**
 * The events of one partition of a group, in order. `upTo` is what the tide says is safe, and no farther than one window ahead. A group
 * that was forgotten this moment wants none, and not all because it has no types.
 */
export const readEvents = statement<EventRow>()(
  'event.read',
  (p: { group: string; partition: number; partitions: number; after: number; upTo: number; limit: number }) => sql`
  select ${columns}, ${itemIf(wantsItems(p.group), 'event')}
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

/** Which events somebody wants to see; null means any. */
export interface BrowseFilter {
  types: string[] | null
  tenant: string | null
  jobId: string | null
  /** Whether also those of the items of fan-outs. */
  items: boolean
}

const isWanted = (p: BrowseFilter) => sql`(${p.types}::text[] is null or type = any(${p.types}))
    and (${p.tenant}::text is null or tenant = ${p.tenant})`

/** Where to look: behind a place, up to another one, for so many events. */
interface BrowseRange extends BrowseFilter {
  after: number
  upTo: number
  limit: number
}

/** An event that fits, and how far was looked: null if all of the range was. Without a seq, none fits. */
export type BrowsedRow = Omit<EventRow, 'seq'> & { seq: number | null; reached: number | null }

/**
 * Events behind a place in the log, for whoever only looks. At most so many rows are looked at, so what is rare costs no more than what is frequent: who finds
 * too little goes on behind `reached`.
 */
export const browseEvents = statement<BrowsedRow>()(
  'event.browse',
  (p: BrowseRange & { most: number }) => sql`
  select fitting.*, edge.reached
  from (
    select (
      select seq
      from holdfast.event
      where seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
      order by seq
      offset ${p.most}::int - 1
      limit 1
    ) as reached
  ) as edge
  left join (
    select scanned.*, ${itemIf(sql`${p.items}::boolean`, 'scanned')}
    from (
      select ${columns}
      from holdfast.event
      where seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
      order by seq
      limit ${p.most}::int
    ) as scanned
    where ${isWanted(p)} and ${fitsItem(sql`${p.items}::boolean`, 'scanned')}
    limit ${p.limit}
  ) as fitting on true
  order by fitting.seq`,
)

/**
 * The same among the events of one tenant, found by an index whatever others do. The index leaves out the tenant of those who know none. All that is looked at
 * is read, so ask for little.
 */
export const browseTenantEvents = statement<BrowsedRow>()(
  'event.browse_tenant',
  (p: BrowseRange & { most: number }) => sql`
  with scanned as materialized (
    select ${columns}
    from holdfast.events_of_tenant(${p.tenant}, ${p.after}::bigint, ${p.upTo}::bigint, ${p.most}::int)
  )
  select fitting.*, edge.reached
  from (select case when count(*) >= ${p.most}::int then max(seq) end as reached from scanned) as edge
  left join (
    select scanned.*, ${itemIf(sql`${p.items}::boolean`, 'scanned')}
    from scanned
    where ${isWanted(p)} and ${fitsItem(sql`${p.items}::boolean`, 'scanned')}
    order by scanned.seq
    limit ${p.limit}
  ) as fitting on true
  order by fitting.seq`,
)

/** The events of one job behind a place in the log: they have an index of their own, whatever else is in the log. */
export const browseJobEvents = statement<EventRow>()(
  'event.browse_job',
  (p: BrowseRange) => sql`
  select told.*, ${itemOf('told')} as item
  from (
    select ${columns}
    from holdfast.event
    where job_id = ${p.jobId}::uuid and seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
    offset 0
  ) as told
  where ${isWanted(p)}
  order by seq
  limit ${p.limit}`,
)

/** The place in the log that has so many of the wanted events before the end, or that is so many events before it. */
export const placeBeforeEnd = statement<{ seq: number }>()(
  'event.place_before_end',
  (p: BrowseFilter & { upTo: number; back: number; most: number }) => sql`
  select coalesce(min(seq) - 1, ${p.upTo}::bigint) as seq
  from (
    select seq
    from (
      select seq, type, tenant, job_id
      from holdfast.event
      where seq <= ${p.upTo}::bigint
      order by seq desc
      limit ${p.most}::int
    ) as scanned
    where ${isWanted(p)} and ${fitsItem(sql`${p.items}::boolean`, 'scanned')}
    limit ${p.back}
  ) as last`,
)

/** The same among the events of one job. */
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

/** The place in the log before the first event of that time or later. */
export const placeAtTime = statement<{ seq: number }>()(
  'event.place_at_time',
  (p: { at: Date; upTo: number }) => sql`
  select coalesce(min(seq) - 1, ${p.upTo}::bigint) as seq
  from holdfast.event
  where at >= ${p.at}::timestamptz`,
)
