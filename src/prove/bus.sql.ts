import { sql, statement } from '../postgres/sql.ts'

/** The position of a cursor, and its reader. */
export interface CursorRow {
  group_name: string
  partition: number
  seq: number
  term: number
  /** The process that reads; null if no live one does. */
  pid: number | null
  /** When its lease ends, in milliseconds on the server's clock. */
  lease_ms: number | null
  /** How many events it has not passed yet. */
  behind: number
}

/** Every cursor of the cell. */
export const cursors = statement<CursorRow>()(
  'prove.cursors',
  () => sql`
  select cursor.group_name, cursor.partition, cursor.seq, cursor.term, reader.pid,
    (extract(epoch from reader.lease_until) * 1000)::float8 as lease_ms,
    (select count(*) from holdfast.event where event.seq > cursor.seq) as behind
  from holdfast.event_cursor as cursor
  left join holdfast.event_reader as reader on reader.id = cursor.reader_id and reader.lease_until > now()
  order by cursor.group_name, cursor.partition`,
)

/** An event that a group wants. */
export interface WantedRow {
  seq: number
  job_id: string | null
  type: string
  kind: string | null
}

/** Every event that a group wants, in order. */
export const wantedEvents = statement<WantedRow>()(
  'prove.wanted_events',
  (p: { group: string }) => sql`
  select event.seq, event.job_id, event.type, event.kind
  from holdfast.event
  join holdfast.event_group on event_group.name = ${p.group} and coalesce(event.type = any(event_group.types), true)
  order by event.seq`,
)

/** An event that was parked. */
export interface ParkedRow {
  seq: number
  error: string
  is_due: boolean
}

/** Every parked event of a group. */
export const parkedEvents = statement<ParkedRow>()(
  'prove.parked_events',
  (p: { group: string }) => sql`
  select seq, error, replay_at is not null as is_due
  from holdfast.parked_event
  where group_name = ${p.group}
  order by seq`,
)

/** A delivery, with the path that it goes to. */
export interface DeliveryRow {
  id: string
  event_id: string
  state: string
  type: string
  body: string
  error: string | null
  /** Null if its receiver is gone. */
  path: string | null
}

/** Every delivery of the cell. */
export const cellDeliveries = statement<DeliveryRow>()(
  'prove.deliveries',
  () => sql`
  select delivery.id, delivery.event_id, delivery.state, delivery.type, delivery.body, delivery.error,
    substring(coalesce(endpoint.url, hook.url) from '^[a-z]+://[^/]+(/.*)$') as path
  from holdfast.delivery
  left join holdfast.endpoint on endpoint.id = delivery.endpoint_id
  left join holdfast.job_webhook as hook on hook.job_id = delivery.job_id and delivery.endpoint_id is null
  order by delivery.event_seq`,
)

/** Events that an endpoint or the webhook of a job wants, and that have no delivery to it. */
export const unplannedEvents = statement<{ seq: number; type: string; wanted_by: string }>()(
  'prove.unplanned_events',
  () => sql`
  select event.seq, event.type, 'the endpoint ' || endpoint.id as wanted_by
  from holdfast.event
  join holdfast.endpoint on endpoint.tenant = event.tenant and event.type = any(endpoint.types) and event.at >= endpoint.created_at
  where not exists (
    select from holdfast.delivery where delivery.event_seq = event.seq and delivery.endpoint_id = endpoint.id
  )
  union all
  select event.seq, event.type, 'the job ' || event.job_id
  from holdfast.event
  join holdfast.job_webhook as hook on hook.job_id = event.job_id and event.type = any(hook.types)
  where not exists (
    select from holdfast.delivery where delivery.event_seq = event.seq and delivery.endpoint_id is null
  )
  order by seq`,
)
