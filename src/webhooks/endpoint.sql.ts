import type { EventType } from '../job/event-type.ts'
import { highestId } from '../job/id.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** An endpoint without its secrets, which are read only to sign. */
export interface EndpointRow {
  id: string
  tenant: string
  url: string
  types: string[]
  items: boolean
  headers: Record<string, string>
  note: string | null
  created_at: Date
  disabled_at: Date | null
  disabled_why: string | null
  failing_since: Date | null
  old_secret_until: Date | null
}

/** One endpoint; with a tenant, only if it belongs to it. */
export interface EndpointScope {
  id: string
  tenant: string | null
}

/** An endpoint to act on, and who does it. */
export interface EndpointAct extends EndpointScope {
  by: string | null
}

const columns = sql`id, tenant, url, types, items, headers, note, created_at, disabled_at, disabled_why, failing_since,
    case when old_secret_until > now() then old_secret_until end as old_secret_until`
const isIt = (p: EndpointScope) => sql`id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant})`

/** The data of an event about an endpoint. Of its URL only the origin, because the rest often contains a token. */
const told = (p: {
  by: string | null
  changed?: string[]
  why?: string
}): Sql => sql`json_strip_nulls(json_build_object(
      'endpoint', id, 'origin', substring(url from '^[a-z]+://[^/?#]+'), 'changed', ${p.changed ?? null}::text[], 'why', ${p.why ?? null}::text, 'by', ${p.by}::text))`

/** The event about the endpoint in `changed`, written with the change. */
const announcing = (type: EventType, p: Parameters<typeof told>[0]): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${raw(`'${type}'`)}, tenant, ${told(p)}
    from changed
  )`

/** Lets one transaction at a time create endpoints of a tenant, so that two together don't exceed its limit. */
export const lockEndpoints = statement<never>()(
  'endpoint.lock',
  (p: { tenant: string }) => sql`select pg_advisory_xact_lock(hashtextextended(${`holdfast.endpoint ${p.tenant}`}, 0))`,
)

/**
 * Creates an endpoint. No row back: the tenant has reached its limit. The event comes first, so that its position in the log is before the
 * endpoint's, which then does not receive the event of its own creation.
 */
export const createEndpoint = statement<EndpointRow>()(
  'endpoint.create',
  (p: {
    id: string
    tenant: string
    url: string
    types: string[]
    items: boolean
    headers: string
    secret: string
    note: string | null
    most: number
    by: string | null
  }) => sql`
  with announced as (
    insert into holdfast.event_log (type, tenant, data)
    select 'endpoint.created', tenant, ${told({ by: p.by })}
    from (select ${p.id}::uuid as id, ${p.tenant}::text as tenant, ${p.url}::text as url) as wanted
    where (select count(*) from holdfast.endpoint where tenant = ${p.tenant}) < ${p.most}::int
    returning seq
  )
  insert into holdfast.endpoint (id, tenant, url, types, items, headers, secret, note)
  select ${p.id}::uuid, ${p.tenant}, ${p.url}, ${p.types}::text[], ${p.items}::boolean, ${p.headers}::json, ${p.secret}, ${p.note}
  from announced
  returning ${columns}`,
)

/** Endpoints, newest first. */
export const listEndpoints = statement<EndpointRow>()(
  'endpoint.list',
  (p: { tenant: string | null; before: string | null; limit: number }) => sql`
  select ${columns}
  from holdfast.endpoint
  where (${p.tenant}::text is null or tenant = ${p.tenant}) and id < coalesce(${p.before}::uuid, ${raw(`'${highestId}'::uuid`)})
  order by id desc
  limit ${p.limit}`,
)

/** One endpoint. */
export const getEndpoint = statement<EndpointRow>()(
  'endpoint.get',
  (p: EndpointScope) => sql`
  select ${columns}
  from holdfast.endpoint
  where ${isIt(p)}`,
)

/** What a test of an endpoint needs. An event records the test. */
export const endpointSecrets = statement<{
  url: string
  headers: Record<string, string>
  tenant: string
  secret: string
  old_secret: string | null
  now_ms: number
}>()(
  'endpoint.secrets',
  (p: EndpointAct) => sql`
  with changed as (
    select id, url, headers, tenant, secret, case when old_secret_until > now() then old_secret end as old_secret,
      (date_part('epoch', now()) * 1000)::float8 as now_ms
    from holdfast.endpoint
    where ${isIt(p)}
  ),
  ${announcing('endpoint.tested', { by: p.by })}
  select url, headers, tenant, secret, old_secret, now_ms
  from changed`,
)

/** Changes an endpoint; null leaves a field unchanged. New event types apply from now on. */
export const updateEndpoint = statement<EndpointRow>()(
  'endpoint.update',
  (
    p: EndpointAct & {
      url: string | null
      types: string[] | null
      items: boolean | null
      headers: string | null
      note: string | null
      /** The names of the changed fields. */
      changed: string[]
    },
  ) => sql`
  with changed as (
    update holdfast.endpoint
    set url = coalesce(${p.url}::text, url), headers = coalesce(${p.headers}::json, headers), note = coalesce(${p.note}::text, note),
      types = coalesce(${p.types}::text[], types), items = coalesce(${p.items}::boolean, items),
      types_seq = case when ${p.types}::text[] is null and ${p.items}::boolean is null then types_seq else holdfast.end_of_log() end
    where ${isIt(p)}
    returning ${columns}
  ),
  ${announcing('endpoint.updated', { by: p.by, changed: p.changed })}
  select *
  from changed`,
)

/** Gives an endpoint a new secret; the previous one stays valid for a while. */
export const rotateSecret = statement<EndpointRow>()(
  'endpoint.rotate',
  (p: EndpointAct & { secret: string; graceMs: number }) => sql`
  with changed as (
    update holdfast.endpoint
    set old_secret = secret, old_secret_until = now() + ${p.graceMs}::float8 * interval '1 ms', secret = ${p.secret}
    where ${isIt(p)}
    returning ${columns}
  ),
  ${announcing('endpoint.rotated', { by: p.by })}
  select *
  from changed`,
)

/** Enables an endpoint. Deliveries that became dead letters stay so until they are replayed. */
export const enableEndpoint = statement<EndpointRow>()(
  'endpoint.enable',
  (p: EndpointAct) => sql`
  with changed as (
    update holdfast.endpoint
    set disabled_at = null, disabled_why = null, failing_since = null
    where ${isIt(p)}
    returning ${columns}
  ),
  ${announcing('endpoint.enabled', { by: p.by })}
  select *
  from changed`,
)

/** Turns the pending deliveries of an endpoint into dead letters. Locks deliveries before the endpoint, in the same order as writing outcomes. */
const dropWaiting = (p: EndpointScope, why: string) => sql`
  dropped as (
    update holdfast.delivery
    set state = 'dead', ended_at = now(), error = ${why}
    where tenant = (select tenant from holdfast.endpoint where ${isIt(p)}) and lane = ${p.id}::uuid::text and state = 'pending'
    returning id
  )`

/** Disables an endpoint. */
export const disableEndpoint = statement<EndpointRow>()(
  'endpoint.disable',
  (p: EndpointAct & { why: string; error: string }) => sql`
  with ${dropWaiting(p, p.error)},
  changed as (
    update holdfast.endpoint
    set disabled_at = coalesce(disabled_at, now()), disabled_why = coalesce(disabled_why, ${p.why})
    where ${isIt(p)} and (select count(*) from dropped) >= 0
    returning ${columns}
  ),
  ${announcing('endpoint.disabled', { by: p.by, why: p.why })}
  select *
  from changed`,
)

/** Removes an endpoint. Its deliveries stay listed. */
export const removeEndpoint = statement<{ id: string }>()(
  'endpoint.remove',
  (p: EndpointAct & { error: string }) => sql`
  with ${dropWaiting(p, p.error)},
  changed as (
    delete from holdfast.endpoint
    where ${isIt(p)} and (select count(*) from dropped) >= 0
    returning id, tenant, url
  ),
  ${announcing('endpoint.removed', { by: p.by })}
  select id
  from changed`,
)
