import { highestId, lowestId } from '../job/id.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { notify } from '../transitions/wake.sql.ts'

/** A delivery. */
export interface DeliveryRow {
  id: string
  event_id: string
  event_seq: number
  type: string
  tenant: string
  job_id: string | null
  endpoint_id: string | null
  state: string
  created_at: Date
  next_at: Date
  claimed_at: Date | null
  tries: number
  status: number | null
  error: string | null
  excerpt: string | null
  ms: number | null
  ended_at: Date | null
}

/** Which deliveries; null means any. */
export interface DeliveryFilter {
  endpoint: string | null
  job: string | null
  tenant: string | null
  state: string | null
  before: string | null
  limit: number
}

const columns = sql`id, event_id, event_seq, type, tenant, job_id, endpoint_id, state, created_at, next_at, claimed_at, tries, status, error, excerpt, ms, ended_at`

const lowest = raw(`'${lowestId}'::uuid`)
const highest = raw(`'${highestId}'::uuid`)
const fits = (p: DeliveryFilter) => sql`(${p.endpoint}::uuid is null or endpoint_id = ${p.endpoint})
    and (${p.job}::uuid is null or job_id = ${p.job})
    and (${p.tenant}::text is null or tenant = ${p.tenant})
    and (${p.state}::text is null or state = ${p.state})`

/** A page of deliveries, newest first. */
export const listDeliveries = statement<DeliveryRow>()(
  'delivery.list',
  (p: DeliveryFilter) => sql`
  select ${columns}
  from holdfast.delivery
  where ${fits(p)} and id < coalesce(${p.before}::uuid, ${highest})
  order by id desc
  limit ${p.limit}`,
)

/** The same for one tenant, by an index, so that other tenants don't matter. The comparisons use pairs, because no other index has that order. */
export const listDeliveriesOfTenant = statement<DeliveryRow>()(
  'delivery.list_tenant',
  (p: DeliveryFilter) => sql`
  select ${columns}
  from holdfast.delivery
  where ${fits(p)} and (tenant, id) >= (${p.tenant}::text, ${lowest})
    and (tenant, id) < (${p.tenant}::text, coalesce(${p.before}::uuid, ${highest})) and tenant <> 'default'
  order by tenant desc, id desc
  limit ${p.limit}`,
)

/** One delivery with its body. */
export const getDelivery = statement<DeliveryRow & { body: string }>()(
  'delivery.get',
  (p: { id: string; tenant: string | null }) => sql`
  select ${columns}, body
  from holdfast.delivery
  where id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant})`,
)

/** Counts pending and dead deliveries, scanning at most `most` of each. The orders are those of their indexes. */
export const countDeliveries = statement<{ pending: number; dead: number; is_capped: boolean }>()(
  'delivery.count',
  (p: { tenant: string | null; most: number }) => {
    const counted = (walk: Sql) => sql`
    select count(*) filter (where ${p.tenant}::text is null or walked.tenant = ${p.tenant}) as own, count(*) >= ${p.most}::int as is_capped
    from (${walk} limit ${p.most}) as walked`
    return sql`
  select pending.own as pending, dead.own as dead, pending.is_capped or dead.is_capped as is_capped
  from (${counted(sql`select tenant from holdfast.delivery where state = 'pending' order by tenant, lane, next_at`)}) as pending,
    (${counted(sql`select tenant from holdfast.delivery where state = 'dead' order by id`)}) as dead`
  },
)

/** Resets a delivery, except for its fence, its id and its body. */
const pendingAgain = sql`state = 'pending', ended_at = null, next_at = now(), failures = 0, failed_at = null`

/** Sends an ended delivery again. No row back: it has not ended, or does not exist. */
export const replayDelivery = statement<{ id: string }>()(
  'delivery.replay',
  (p: { id: string; tenant: string | null; by: string | null }) => sql`
  with changed as (
    update holdfast.delivery
    set ${pendingAgain}
    where id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant}) and state <> 'pending'
    returning id, tenant, endpoint_id
  ),
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select 'delivery.replayed', tenant,
      json_strip_nulls(json_build_object('deliveries', 1, 'delivery', id, 'endpoint', endpoint_id, 'by', ${p.by}::text))
    from changed
  )
  select id, ${notify('holdfast_event')} as woken
  from changed`,
)

/** Which ended deliveries to send again; null means any. */
interface Replay {
  endpoint: string | null
  tenant: string | null
  since: Date | null
  states: string[]
  after: string
  limit: number
  by: string | null
}

const isChosen = (p: Replay) => sql`state = any(${p.states}::text[])
      and (${p.endpoint}::uuid is null or endpoint_id = ${p.endpoint})
      and (${p.since}::timestamptz is null or created_at >= ${p.since})`

/**
 * Sends ended deliveries again, a batch at a time, with one event for each tenant; the highest id is `after` for the next batch. Those of one
 * tenant are found by its index, so that other tenants don't matter; only one of the two scans ever runs.
 */
export const replayDeliveries = statement<{ id: string }>()(
  'delivery.replay_all',
  (p: Replay) => sql`
  with chosen as materialized (
    select id
    from holdfast.delivery
    where coalesce(${p.tenant}::text, 'default') = 'default' and (${p.tenant}::text is null or tenant = ${p.tenant})
      and ${isChosen(p)} and id > ${p.after}::uuid
    order by id
    limit ${p.limit}
    for update
  ),
  chosen_of_tenant as materialized (
    select id
    from holdfast.delivery
    where ${p.tenant}::text <> 'default' and (tenant, id) > (${p.tenant}::text, ${p.after}::uuid) and (tenant, id) <= (${p.tenant}::text, ${highest})
      and ${isChosen(p)} and tenant <> 'default'
    order by tenant, id
    limit ${p.limit}
    for update
  ),
  changed as (
    update holdfast.delivery
    set ${pendingAgain}
    where id = any(array(select id from chosen union all select id from chosen_of_tenant)) and state = any(${p.states}::text[])
    returning id, tenant
  ),
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select 'delivery.replayed', tenant, json_strip_nulls(json_build_object('deliveries', count(*), 'endpoint', ${p.endpoint}::uuid, 'by', ${p.by}::text))
    from changed
    group by tenant
  )
  select id, ${notify('holdfast_event')} as woken
  from changed`,
)

/** Removes deliveries that ended long ago. */
export const forgetDeliveries = statement<{ id: string }>()(
  'delivery.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.delivery
  where id = any(array(
    select id
    from holdfast.delivery
    where ended_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by ended_at
    limit ${p.limit}
  )) and ended_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
  returning id`,
)
