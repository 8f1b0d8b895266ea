import { sql, statement } from '../store/sql.ts'
import type { EventRow } from './event.ts'

const columns = sql`seq, at, type, state, job_id, kind, tenant, session_id, attempt, stage, data`

/**
 * The events of one partition of a group, in order. `upTo` is what the tide says is safe, and no farther than one window ahead. A group
 * that was forgotten this moment wants none, and not all because it has no types.
 */
export const readEvents = statement<EventRow>()(
  'event.read',
  (p: { group: string; partition: number; partitions: number; after: number; upTo: number; limit: number }) => sql`
  select ${columns}
  from holdfast.event
  where seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
    and exists (select from holdfast.event_group where name = ${p.group})
    and coalesce(type = any((select types from holdfast.event_group where name = ${p.group})::text[]), true)
    and (${p.partitions}::int = 1 or (uuid_hash(coalesce(job_id, '00000000-0000-0000-0000-000000000000')) & 2147483647) % ${p.partitions}::int = ${p.partition}::int)
  order by seq
  limit ${p.limit}`,
)

/** Which events somebody wants to see; null means any. */
export interface BrowseFilter {
  types: string[] | null
  tenant: string | null
  jobId: string | null
}

const isWanted = (p: BrowseFilter) => sql`(${p.types}::text[] is null or type = any(${p.types}))
    and (${p.tenant}::text is null or tenant = ${p.tenant})
    and (${p.jobId}::uuid is null or job_id = ${p.jobId})`

/** Events behind a place in the log, for whoever only looks. */
export const browseEvents = statement<EventRow>()(
  'event.browse',
  (p: BrowseFilter & { after: number; upTo: number; limit: number }) => sql`
  select ${columns}
  from holdfast.event
  where seq > ${p.after}::bigint and seq <= ${p.upTo}::bigint
    and ${isWanted(p)}
  order by seq
  limit ${p.limit}`,
)

/** The place in the log that has so many of the wanted events before the end. */
export const placeBeforeEnd = statement<{ seq: number }>()(
  'event.place_before_end',
  (p: BrowseFilter & { upTo: number; back: number }) => sql`
  select coalesce(min(seq) - 1, ${p.upTo}::bigint) as seq
  from (
    select seq
    from holdfast.event
    where seq <= ${p.upTo}::bigint
      and ${isWanted(p)}
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
