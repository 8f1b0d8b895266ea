import { sql, statement } from '../postgres/sql.ts'
import { announceGroup } from '../transitions/group-event.sql.ts'
import { notify } from '../transitions/wake.sql.ts'
import { openWriters } from './horizon.sql.ts'

/** A group, and how far it has read. */
export interface GroupRow {
  name: string
  types: string[] | null
  items: boolean
  partitions: number
  created_at: Date
  seq: number
  readers: number
  held: number
  parked: number
  behind: number
  behind_ms: number
  failing: { seq: number; failures: number; error: string }[] | null
  /** The transaction that holds it back, if any. */
  held_by: { pid: number | null; application: string | null; prepared: string | null; forMs: number } | null
}

/** Readers wait for every open transaction that writes; those that take longer than this are reported. */
const noticedMs = 1_000

/** All groups. Unread events are counted in log positions, some of which are never used. */
export const listGroups = statement<GroupRow>()(
  'group.list',
  () => sql`
  with writer as materialized (${openWriters})
  select event_group.name, event_group.types, event_group.items, event_group.partitions, event_group.created_at, cursors.seq, cursors.held, cursors.failing,
    (select count(*) from holdfast.event_reader as reader where reader.group_name = event_group.name and reader.lease_until > now()) as readers,
    (select count(*) from holdfast.parked_event as parked where parked.group_name = event_group.name) as parked,
    greatest(0, log.top - cursors.seq) as behind,
    coalesce(extract(epoch from clock_timestamp() - unread.at) * 1000, 0)::float8 as behind_ms,
    (
      select json_build_object('pid', writer.pid, 'application', writer.application, 'prepared', writer.prepared, 'forMs', writer.for_ms)
      from writer
      -- an event can be read once every transaction that began to write before it has ended
      where cursors.seq < log.top and writer.for_ms > ${noticedMs} and (unread.txid is null or age(writer.xid) > age(unread.txid))
      order by writer.for_ms desc
      limit 1
    ) as held_by
  from holdfast.event_group
  cross join lateral (
    select min(cursor.seq) as seq, count(*) filter (where reader.lease_until > now()) as held,
      json_agg(json_build_object('seq', cursor.failing_seq, 'failures', cursor.failures, 'error', cursor.error))
        filter (where cursor.failing_seq is not null) as failing
    from holdfast.event_cursor as cursor
    left join holdfast.event_reader as reader on reader.id = cursor.reader_id
    where cursor.group_name = event_group.name
  ) as cursors
  left join lateral (
    select event.at, event.txid
    from holdfast.events_after(cursors.seq, 9223372036854775807, 1) as event
  ) as unread on true
  cross join (select case when is_called then last_value else 0 end as top from holdfast.event_seq) as log
  order by event_group.name`,
)

/**
 * Moves all cursors of a group to another position in the log. A current reader loses its fence, learns this with its next heartbeat, and
 * releases its cursors. Until then it keeps them, so that no second process handles the same events in the meantime.
 */
export const rewindGroup = statement<{ partition: number }>()(
  'group.rewind',
  (p: { group: string; seq: number; by: string | null }) => sql`
  with changed as (
    update holdfast.event_cursor
    set seq = ${p.seq}::bigint, term = term + 1, crashes = 0, careful_until = 0, failing_seq = null, failures = 0, error = null,
      moved_at = now()
    where group_name = ${p.group}
    returning partition
  ),
  ${announceGroup('group.rewound', p)}
  select partition, ${notify('holdfast_event')} as woken
  from changed`,
)

/** Removes a group with its cursors and parked events. The log is no longer kept for it. */
export const forgetGroup = statement<{ name: string }>()(
  'group.forget',
  (p: { group: string; by: string | null }) => sql`
  with changed as (
    delete from holdfast.event_group
    where name = ${p.group}
    returning name
  ),
  ${announceGroup('group.forgotten', p)}
  select name
  from changed`,
)

/** Creates partitions of the log ahead of time. */
export const layPartitions = statement<{ name: string }>()(
  'event.lay_partitions',
  (p: { spanMs: number; aheadMs: number }) => sql`
  select name
  from holdfast.add_event_partitions(${p.spanMs}::float8 * interval '1 ms', ${p.aheadMs}::float8 * interval '1 ms') as name`,
)

/** Drops partitions that have expired and were read by every group, or are older than the cap. */
export const dropPartitions = statement<{ name: string; is_dropped: boolean; unread_by: string[] | null }>()(
  'event.drop_partitions',
  (p: { retentionMs: number; capMs: number }) => sql`
  select name, is_dropped, unread_by
  from holdfast.drop_event_partitions(${p.retentionMs}::float8 * interval '1 ms', ${p.capMs}::float8 * interval '1 ms')`,
)
