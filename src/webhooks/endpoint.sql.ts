import { sql, statement } from '../store/sql.ts'

/** An endpoint, without its secrets: they are read only to sign. */
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

/** One endpoint, perhaps only if it is of that tenant. */
export interface EndpointScope {
  id: string
  tenant: string | null
}

const columns = sql`id, tenant, url, types, items, headers, note, created_at, disabled_at, disabled_why, failing_since,
    case when old_secret_until > now() then old_secret_until end as old_secret_until`
const isIt = (p: EndpointScope) => sql`id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant})`

/** Lets one transaction at a time make endpoints of a tenant, so that two together do not pass its limit. */
export const lockEndpoints = statement<never>()(
  'endpoint.lock',
  (p: { tenant: string }) => sql`select pg_advisory_xact_lock(hashtextextended(${`holdfast.endpoint ${p.tenant}`}, 0))`,
)

/** Makes an endpoint. No row back: the tenant has as many as it may have. */
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
  }) => sql`
  insert into holdfast.endpoint (id, tenant, url, types, items, headers, secret, note)
  select ${p.id}::uuid, ${p.tenant}, ${p.url}, ${p.types}::text[], ${p.items}::boolean, ${p.headers}::json, ${p.secret}, ${p.note}
  where (select count(*) from holdfast.endpoint where tenant = ${p.tenant}) < ${p.most}::int
  returning ${columns}`,
)

/** The endpoints, the latest first. */
export const listEndpoints = statement<EndpointRow>()(
  'endpoint.list',
  (p: { tenant: string | null; before: string | null; limit: number }) => sql`
  select ${columns}
  from holdfast.endpoint
  where (${p.tenant}::text is null or tenant = ${p.tenant}) and id < coalesce(${p.before}::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
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

/** What it takes to sign for an endpoint. */
export const endpointSecrets = statement<{
  url: string
  headers: Record<string, string>
  tenant: string
  secret: string
  old_secret: string | null
  now_ms: number
}>()(
  'endpoint.secrets',
  (p: EndpointScope) => sql`
  select url, headers, tenant, secret, case when old_secret_until > now() then old_secret end as old_secret,
    (date_part('epoch', now()) * 1000)::float8 as now_ms
  from holdfast.endpoint
  where ${isIt(p)}`,
)

/** Changes an endpoint; null leaves as it is. What it wants it wants from here on. */
export const updateEndpoint = statement<EndpointRow>()(
  'endpoint.update',
  (
    p: EndpointScope & {
      url: string | null
      types: string[] | null
      items: boolean | null
      headers: string | null
      note: string | null
    },
  ) => sql`
  update holdfast.endpoint
  set url = coalesce(${p.url}::text, url), headers = coalesce(${p.headers}::json, headers), note = coalesce(${p.note}::text, note),
    types = coalesce(${p.types}::text[], types), items = coalesce(${p.items}::boolean, items),
    types_seq = case when ${p.types}::text[] is null and ${p.items}::boolean is null then types_seq else holdfast.place_in_order() end
  where ${isIt(p)}
  returning ${columns}`,
)

/** Gives an endpoint another secret; the one before stays valid for a while. */
export const rotateSecret = statement<EndpointRow>()(
  'endpoint.rotate',
  (p: EndpointScope & { secret: string; graceMs: number }) => sql`
  update holdfast.endpoint
  set old_secret = secret, old_secret_until = now() + ${p.graceMs}::float8 * interval '1 ms', secret = ${p.secret}
  where ${isIt(p)}
  returning ${columns}`,
)

/** Switches an endpoint on again. What died meanwhile stays dead until it is replayed. */
export const enableEndpoint = statement<EndpointRow>()(
  'endpoint.enable',
  (p: EndpointScope) => sql`
  update holdfast.endpoint
  set disabled_at = null, disabled_why = null, failing_since = null
  where ${isIt(p)}
  returning ${columns}`,
)

/** What waits for an endpoint dies. Locks deliveries before the endpoint, as whoever writes an outcome does. */
const dropWaiting = (p: EndpointScope, why: string) => sql`
  dropped as (
    update holdfast.delivery
    set state = 'dead', ended_at = now(), error = ${why}
    where tenant = (select tenant from holdfast.endpoint where ${isIt(p)}) and lane = ${p.id}::uuid::text and state = 'pending'
    returning id
  )`

/** Switches an endpoint off by hand. */
export const disableEndpoint = statement<EndpointRow>()(
  'endpoint.disable',
  (p: EndpointScope & { why: string; error: string }) => sql`
  with ${dropWaiting(p, p.error)}
  update holdfast.endpoint
  set disabled_at = coalesce(disabled_at, now()), disabled_why = coalesce(disabled_why, ${p.why})
  where ${isIt(p)} and (select count(*) from dropped) >= 0
  returning ${columns}`,
)

/** Removes an endpoint. Its deliveries stay listed. */
export const removeEndpoint = statement<{ id: string }>()(
  'endpoint.remove',
  (p: EndpointScope & { error: string }) => sql`
  with ${dropWaiting(p, p.error)}
  delete from holdfast.endpoint
  where ${isIt(p)} and (select count(*) from dropped) >= 0
  returning id`,
)
