import { announceGroup } from '../store/group-event.sql.ts'
import { sql, statement } from '../store/sql.ts'
import { notify } from '../store/wake.sql.ts'

/** A group, with how far it has come. */
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
  /** The transaction that it waits for, if one holds it back. */
  held_by: { pid: number | null; application: string | null; prepared: string | null; forMs: number } | null
}

/** Readers wait for every transaction that writes; one that takes longer than this is worth a word. */
const noticedMs = 1_000

/** All groups. How much is unread is counted in numbers of the log, of which a few are never used. */
export const listGroups = statement<GroupRow>()(
  'group.list',
  () => sql`
  with writer as materialized (
    select pid, application_name as application, null::text as prepared, backend_xid as xid,
      (extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as for_ms
    from pg_stat_activity
    where backend_xid is not null and pid <> pg_backend_pid() and datname = current_database()
    union all
    select null, null, gid, transaction, (extract(epoch from clock_timestamp() - prepared) * 1000)::float8
    from pg_prepared_xacts
    where database = current_database()
  )
  select event_group.name, event_group.types, event_group.items, event_group.partitions, event_group.created_at, cursors.seq, cursors.held, cursors.failing,
    (select count(*) from holdfast.event_reader as reader where reader.group_name = event_group.name and reader.lease_until > now()) as readers,
    (select count(*) from holdfast.parked_event as parked where parked.group_name = event_group.name) as parked,
    greatest(0, log.top - cursors.seq) as behind,
    coalesce(extract(epoch from clock_timestamp() - unread.at) * 1000, 0)::float8 as behind_ms,
    (
      select json_build_object('pid', writer.pid, 'application', writer.application, 'prepared', writer.prepared, 'forMs', writer.for_ms)
      from writer
      -- an event is read when every transaction has ended that began to write before it was written
      where cursors.seq < log.top and writer.for_ms > ${noticedMs} and (unread.txid is null or age(writer.xid) > age(unread.txid::xid))
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
    from holdfast.event
    where event.seq > cursors.seq
    order by event.seq
    limit 1
  ) as unread on true
  cross join (select case when is_called then last_value else 0 end as top from holdfast.event_seq) as log
  order by event_group.name`,
)

/**
 * Sends all cursors of a group to another place in the log. Whoever reads there loses its fence, learns so with its next beat, and lets go:
 * until then the cursor stays with it, so that no second process handles the same events meanwhile.
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

/** Forgets a group: its cursors and its parked events go with it, and the log is kept for it no more. */
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

/** Lays partitions of the log ahead of time. */
export const layPartitions = statement<{ name: string }>()(
  'event.lay_partitions',
  (p: { spanMs: number; aheadMs: number }) => sql`
  select name
  from holdfast.lay_event_partitions(${p.spanMs}::float8 * interval '1 ms', ${p.aheadMs}::float8 * interval '1 ms') as name`,
)

/** Drops partitions that are old enough and were read by every group, or are older than the cap. */
export const dropPartitions = statement<{ name: string; is_dropped: boolean; unread_by: string[] | null }>()(
  'event.drop_partitions',
  (p: { retentionMs: number; capMs: number }) => sql`
  select name, is_dropped, unread_by
  from holdfast.drop_event_partitions(${p.retentionMs}::float8 * interval '1 ms', ${p.capMs}::float8 * interval '1 ms')`,
)
