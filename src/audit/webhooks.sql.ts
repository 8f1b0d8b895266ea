import { sql } from '../postgres/sql.ts'
import { isWantedBy } from '../transitions/wanted-events.sql.ts'
import { type AuditScope, check, lacks, past } from './check.sql.ts'

/** Whether a process plans webhooks, and has done so for longer than the recovery bound. */
const senderLives = (p: AuditScope) => sql`exists (
      select
      from holdfast.event_reader as reader
      where reader.group_name = 'webhooks' and reader.lease_until > now() and reader.started_at < ${past(p)}
    )`

/** Events of the last hour that were planned. Deliveries are kept for at least an hour, so theirs must be there. */
const planned = (p: AuditScope) => sql`
      select event.*
      from holdfast.event
      where event.at > now() - interval '1 hour' and event.seq <= (select min(seq) from holdfast.event_cursor where group_name = 'webhooks')
      order by event.seq desc
      limit ${p.latest}::bigint`

/** Whether the job of an event still exists. For a deleted job it is unknown whether it was an item, and few endpoints want events of items. */
const isKnown = sql`(event.job_id is null or exists (select from holdfast.job where job.id = event.job_id))`

/** The checks of webhooks. */
export const webhookChecks = {
  'wanted-event-is-planned': check(
    'wanted_event_is_planned',
    (p) => sql`
    select event.seq::text, format('%s of %s is wanted by endpoint %s, but was never planned', event.type, event.tenant, endpoint.id)
    from (${planned(p)}) as event
    join holdfast.endpoint on event.seq > endpoint.types_seq and ${isWantedBy('endpoint', 'event')}
    where ${lacks(sql`holdfast.delivery where delivery.event_seq = event.seq and delivery.endpoint_id = endpoint.id`)}
      and ${isKnown}
    union all
    select event.seq::text, format('%s of job %s is wanted by its webhook, but was never planned', event.type, event.job_id)
    from (${planned(p)}) as event
    join holdfast.job_webhook as hook on hook.job_id = event.job_id and event.type = any(hook.types)
    where ${lacks(sql`holdfast.delivery where delivery.event_seq = event.seq and delivery.endpoint_id is null`)}`,
  ),
  'due-delivery-is-tried': check(
    'due_delivery_is_tried',
    (p) => sql`
    select head.id::text, format('has been due since %s, but no process has tried a delivery to %s', head.next_at, head.lane)
    from (
      select distinct on (tenant, lane) id, tenant, lane, next_at, endpoint_id
      from holdfast.delivery
      where state = 'pending' and next_at < ${past(p)}
      order by tenant, lane, next_at
    ) as head
    where ${senderLives(p)}
      and not exists (select from holdfast.endpoint where endpoint.id = head.endpoint_id and endpoint.disabled_at is not null)
      and not exists (select from holdfast.delivery as other where other.tenant = head.tenant and other.lane = head.lane and other.claimed_at > ${past(p)})`,
  ),
  'disabled-has-nothing-pending': check(
    'disabled_has_nothing_pending',
    (p) => sql`
    select delivery.id::text, format('is pending for endpoint %s, which was disabled at %s', endpoint.id, endpoint.disabled_at)
    from holdfast.endpoint
    join holdfast.delivery on delivery.tenant = endpoint.tenant and delivery.lane = endpoint.id::text and delivery.state = 'pending' and delivery.next_at < ${past(p)}
    where endpoint.disabled_at < ${past(p)} and ${senderLives(p)}`,
  ),
  'cursor-within-log': check(
    'cursor_within_log',
    () => sql`
    select cursor.group_name, format('is at position %s, but the log ends at %s', cursor.seq, log.last_value)
    from holdfast.event_cursor as cursor
    cross join holdfast.event_seq as log
    where cursor.seq > log.last_value`,
  ),
} as const
