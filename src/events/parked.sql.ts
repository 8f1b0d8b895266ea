import { sql, statement } from '../postgres/sql.ts'
import { announceGroup } from '../transitions/group-event.sql.ts'
import { notify } from '../transitions/wake.sql.ts'
import type { EventRow } from './event.ts'
import type { CursorFence } from './group.sql.ts'

/** A parked event, and its error. */
export interface ParkedRow {
  seq: number
  partition: number
  event: Omit<EventRow, 'at'> & { at: string }
  error: string
  failures: number
  parked_at: Date
  replay_at: Date | null
}

const columns = sql`seq, partition, event, error, failures, parked_at, replay_at`

/** The parked events of a group, oldest first. */
export const listParked = statement<ParkedRow>()(
  'parked.list',
  (p: { group: string; after: number; limit: number }) => sql`
  select ${columns}
  from holdfast.parked_event
  where group_name = ${p.group} and seq > ${p.after}::bigint
  order by seq
  limit ${p.limit}`,
)

/** Requests the replay of one parked event, or of all of a group. */
export const replayParked = statement<{ seq: number; woken: null }>()(
  'parked.replay',
  (p: { group: string; seq: number | null; by: string | null }) => sql`
  with changed as (
    update holdfast.parked_event
    set replay_at = now()
    where group_name = ${p.group} and (${p.seq}::bigint is null or seq = ${p.seq})
    returning seq
  ),
  ${announceGroup('parked.replayed', p)}
  select seq, ${notify('holdfast_event')} as woken
  from changed`,
)

/** The parked events of a partition that should be replayed. `isBare`: without the events, which may be unreadable. */
export const dueParked = statement<ParkedRow>()(
  'parked.due',
  (p: { group: string; partition: number; limit: number; isBare?: boolean }) => sql`
  select seq, partition, case when ${p.isBare === true}::boolean then null else event end as event, error, failures, parked_at, replay_at
  from holdfast.parked_event
  where group_name = ${p.group} and partition = ${p.partition}::smallint and replay_at is not null and replay_at <= now()
  order by seq
  limit ${p.limit}`,
)

const stillMine = (p: CursorFence) => sql`exists (
    select
    from holdfast.event_cursor as cursor
    where cursor.group_name = ${p.group} and cursor.partition = ${p.partition}::smallint
      and cursor.reader_id = ${p.readerId}::uuid and cursor.term = ${p.term}::bigint
  )`

/** Removes a parked event, as part of a statement that also handles it, if that can be done. */
export const unparking = (p: CursorFence & { seq: number }, isPossible = sql`true`) => sql`
  delete from holdfast.parked_event
  where group_name = ${p.group} and seq = ${p.seq}::bigint and ${stillMine(p)} and ${isPossible}
  returning seq`

/** Removes a parked event that was handled. */
export const unparkEvent = statement<{ seq: number }>()('parked.handled', (p: CursorFence & { seq: number }) =>
  unparking(p),
)

/** Keeps a parked event that failed again. `replayMs`: after how long it is replayed without a request. */
export const keepParked = statement<{ seq: number }>()(
  'parked.failed',
  (p: CursorFence & { seq: number; failures: number; error: string; replayMs?: number | null }) => sql`
  update holdfast.parked_event
  set replay_at = now() + ${p.replayMs ?? null}::float8 * interval '1 ms', parked_at = now(), error = ${p.error}, failures = failures + ${p.failures}::smallint
  where group_name = ${p.group} and seq = ${p.seq}::bigint and ${stillMine(p)}
  returning seq`,
)
