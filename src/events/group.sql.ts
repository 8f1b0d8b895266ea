import { raw, sql, statement } from '../postgres/sql.ts'

/** Whether a reader is alive. A lease that ends further ahead than any lease can is from before the clock was set back. */
const isAlive = (reader: string) =>
  raw(`(${reader}.lease_until > now() and ${reader}.lease_until < now() + interval '15 min')`)

/** The fence of a reader: its writes about a cursor take effect only in this term of the cursor. */
export interface CursorFence {
  group: string
  partition: number
  readerId: string
  term: number
}

const isMine = (p: CursorFence) =>
  sql`group_name = ${p.group} and partition = ${p.partition}::smallint and reader_id = ${p.readerId}::uuid and term = ${p.term}::bigint`

/** The number of dead readers from which on events are read one by one. */
export const carefulAfter = 2

/** Finds a group by its name. */
export const findGroup = statement<{ name: string }>()(
  'group.find',
  (p: { group: string }) => sql`
  select name
  from holdfast.event_group
  where name = ${p.group}`,
)

/** Creates a group with its cursors, or changes what an existing group reads. Returns its number of partitions. */
export const openGroup = statement<{ partitions: number }>()(
  'group.open',
  (p: { group: string; types: string[] | null; items: boolean; partitions: number; seq: number }) => sql`
  with opened as (
    insert into holdfast.event_group (name, types, items, partitions)
    values (${p.group}, ${p.types}::text[], ${p.items}::boolean, ${p.partitions}::smallint)
    on conflict (name) do update set types = excluded.types, items = excluded.items
    returning name, partitions
  ),
  cursors as (
    insert into holdfast.event_cursor (group_name, partition, seq)
    select name, number - 1, ${p.seq}::bigint
    from opened
    cross join generate_series(1, opened.partitions) as number
    on conflict (group_name, partition) do nothing
  )
  select partitions
  from opened`,
)

/** Adds a reader. No row back: the group was removed. */
export const openReader = statement<{ id: string }>()(
  'reader.open',
  (p: { readerId: string; group: string; host: string; pid: number; leaseMs: number }) => sql`
  insert into holdfast.event_reader (id, group_name, host, pid, lease_until)
  select ${p.readerId}::uuid, name, ${p.host}, ${p.pid}::int, now() + ${p.leaseMs}::float8 * interval '1 ms'
  from holdfast.event_group
  where name = ${p.group}
  returning id`,
)

/**
 * Renews the lease of a reader. Returns how many readers share the group, and which cursors the reader still holds. No row back: the lease
 * has expired, and others may read.
 */
export const renewReader = statement<{
  readers: number
  partitions: number
  held: { partition: number; term: number }[]
}>()(
  'reader.renew',
  (p: { readerId: string; group: string; leaseMs: number }) => sql`
  update holdfast.event_reader
  set lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms'
  where id = ${p.readerId}::uuid and lease_until > now()
    and exists (select from holdfast.event_group where name = ${p.group})
  returning
    (select count(*) from holdfast.event_reader as other where other.group_name = ${p.group} and ${isAlive('other')}) as readers,
    (select partitions from holdfast.event_group where name = ${p.group}) as partitions,
    (
      select coalesce(json_agg(json_build_object('partition', cursor.partition, 'term', cursor.term)), '[]')
      from holdfast.event_cursor as cursor
      where cursor.group_name = ${p.group} and cursor.reader_id = ${p.readerId}::uuid
    ) as held`,
)

/** Releases all cursors of a reader, and removes it. */
export const closeReader = statement<never>()(
  'reader.close',
  (p: { readerId: string; group: string }) => sql`
  with freed as (
    update holdfast.event_cursor
    set reader_id = null, wants_wake = false
    where group_name = ${p.group} and reader_id = ${p.readerId}::uuid
  )
  delete from holdfast.event_reader
  where id = ${p.readerId}::uuid`,
)

/** Removes readers that died long ago. */
export const forgetReaders = statement<{ id: string }>()(
  'reader.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.event_reader
  where id in (
    select id
    from holdfast.event_reader
    where lease_until < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    limit ${p.limit}
  )
  returning id`,
)

/** A cursor that was claimed. */
export interface ClaimedCursor {
  partition: number
  seq: number
  term: number
  crashes: number
  careful_until: number
}

/** Claims free cursors: those that their reader has released, and those of a reader whose lease has expired, which counts as a crash. */
export const claimCursors = statement<ClaimedCursor>()(
  'cursor.claim',
  (p: { group: string; readerId: string; limit: number; careful: number }) => sql`
  with free as (
    select cursor.group_name, cursor.partition
    from holdfast.event_cursor as cursor
    where cursor.group_name = ${p.group}
      and not exists (select from holdfast.event_reader as reader where reader.id = cursor.reader_id and ${isAlive('reader')})
      and exists (select from holdfast.event_reader as reader where reader.id = ${p.readerId}::uuid and reader.lease_until > now())
    order by cursor.partition
    limit ${p.limit}
    for update of cursor skip locked
  )
  update holdfast.event_cursor as cursor
  set term = cursor.term + 1, reader_id = ${p.readerId}::uuid, wants_wake = false,
    crashes = case when cursor.reader_id is null then cursor.crashes else cursor.crashes + 1 end,
    careful_until = case when cursor.reader_id is not null and cursor.crashes + 1 = ${raw(String(carefulAfter))}
      then cursor.seq + ${p.careful}::bigint else cursor.careful_until end
  from free
  where cursor.group_name = free.group_name and cursor.partition = free.partition
  returning cursor.partition, cursor.seq, cursor.term, cursor.crashes, cursor.careful_until`,
)

/** Releases a cursor, so that another reader can claim it. */
export const releaseCursor = statement<never>()(
  'cursor.release',
  (p: CursorFence) => sql`
  update holdfast.event_cursor
  set reader_id = null, wants_wake = false
  where ${isMine(p)}`,
)

const moved = sql`moved_at = now(), failing_seq = null, failures = 0, error = null`
const crashesAt = (seq: number) =>
  sql`case when ${seq}::bigint >= careful_until then 0 else least(crashes, ${raw(String(carefulAfter))}) end`

/**
 * A move of a cursor, and whether its reader wants wake-ups afterwards. The cursor must be where the reader left it: if a backup has put it
 * back, the events in between are yet to come, with the same numbers.
 */
export interface CursorMove extends CursorFence {
  from: number
  seq: number
  wantsWake: boolean
}

/** Moves a cursor, as part of a statement that also handles what lies before it. */
export const movingCursor = (p: CursorMove) => sql`
  update holdfast.event_cursor
  set seq = ${p.seq}::bigint, wants_wake = ${p.wantsWake}::boolean, crashes = ${crashesAt(p.seq)}, ${moved}
  where ${isMine(p)} and seq = ${p.from}::bigint
  returning seq`

/** Moves a cursor, after what lies before it was handled. No row back: another reader holds it, or it is elsewhere. */
export const moveCursor = statement<{ seq: number }>()('cursor.move', movingCursor)

/** Notes that an event fails, to show what a group waits for. */
export const noteFailure = statement<{ seq: number }>()(
  'cursor.fail',
  (p: CursorFence & { failingSeq: number; failures: number; error: string }) => sql`
  update holdfast.event_cursor
  set failing_seq = ${p.failingSeq}::bigint, failures = ${p.failures}::smallint, error = ${p.error}
  where ${isMine(p)}
  returning seq`,
)

interface ParkParams {
  from: number
  seq: number
  event: string
  failures: number
  error: string
  replayMs?: number | null
}

/**
 * Parks an event that its group can't handle, and moves the cursor past it. `replayMs`: after how long it is replayed without a request. No row
 * back: another reader holds the cursor, or it is elsewhere.
 */
export const parkEvent = statement<{ seq: number }>()(
  'event.park',
  (p: CursorFence & ParkParams) => sql`
  with past as (
    update holdfast.event_cursor
    set seq = ${p.seq}::bigint, crashes = ${crashesAt(p.seq)}, ${moved}
    where ${isMine(p)} and seq = ${p.from}::bigint
    returning group_name, partition, seq
  )
  insert into holdfast.parked_event as parked (group_name, seq, partition, event, error, failures, replay_at)
  select group_name, seq, partition, ${p.event}::json, ${p.error}, ${p.failures}::smallint, now() + ${p.replayMs ?? null}::float8 * interval '1 ms'
  from past
  on conflict (group_name, seq) do update
    set error = excluded.error, failures = parked.failures + excluded.failures, parked_at = now(), replay_at = excluded.replay_at
  returning seq`,
)
