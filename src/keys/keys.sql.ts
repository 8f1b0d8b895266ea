import { highestId } from '../job/id.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** An API key, as a row. */
export interface KeyRow {
  id: string
  name: string
  tenant: string | null
  scopes: string[]
  created_at: Date
  created_by: string | null
  expires_at: Date | null
  revoked_at: Date | null
  revoked_by: string | null
  used_at: Date | null
}

/** A key to add. */
export interface KeyToCreate {
  id: string
  name: string
  hash: Buffer
  tenant: string | null
  scopes: string[]
  expiresMs: number | null
  by: string | null
  /** The id of the key that creates it; null if none does. */
  maker: string | null
}

const columns = raw('id, name, tenant, scopes, created_at, created_by, expires_at, revoked_at, revoked_by, used_at')
const isGood = raw('revoked_at is null and (expires_at is null or expires_at > now())')

/** The event about the keys in `changed`, written with the change. For keys for all tenants, it has a tenant that can't exist, so no tenant sees it. */
const announcing = (type: 'key.created' | 'key.revoked', by: string | null): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${raw(`'${type}'`)}, coalesce(tenant, '*'), json_strip_nulls(json_build_object(
      'key', id, 'name', name, 'scopes', scopes, 'expiresAt', expires_at, 'by', ${by}::text))
    from changed
  )`

/**
 * Creates a key. A key that another key creates may not have more permissions or a later expiry than that key. No row back: it asks for more, or
 * the key that creates it is revoked or expired.
 */
export const createKey = statement<KeyRow>()(
  'api_key.create',
  (p: KeyToCreate) => sql`
  with maker as (
    select tenant, scopes, expires_at
    from holdfast.api_key
    where id = ${p.maker}::uuid and ${isGood}
  ),
  wanted as (
    select ${p.tenant}::text as tenant, ${p.scopes}::text[] as scopes, now() + ${p.expiresMs}::float8 * interval '1 ms' as expires_at
  ),
  changed as (
    insert into holdfast.api_key (id, name, hash, tenant, scopes, expires_at, created_by)
    select ${p.id}::uuid, ${p.name}, ${p.hash}::bytea, wanted.tenant, wanted.scopes, coalesce(wanted.expires_at, maker.expires_at), ${p.by}::text
    from wanted
    left join maker on true
    where ${p.maker}::uuid is null or (
      maker.scopes is not null
      and (maker.tenant is null or maker.tenant = wanted.tenant)
      and ('admin' = any(maker.scopes) or wanted.scopes <@ maker.scopes)
      and (maker.expires_at is null or wanted.expires_at is null or wanted.expires_at <= maker.expires_at)
    )
    returning ${columns}
  ),
  ${announcing('key.created', p.by)}
  select *
  from changed`,
)

/** The keys with these ids that are neither revoked nor expired. */
export const findKey = statement<KeyRow & { hash: Buffer }>()(
  'api_key.find',
  (p: { ids: string[] }) => sql`
  select ${columns}, hash
  from holdfast.api_key
  where id = any(${p.ids}::uuid[]) and ${isGood}`,
)

/** Which keys; null means any. */
interface KeyPage {
  tenant: string | null
  /** Only keys whose id ends with this. */
  ending: string | null
  isGood: boolean
  before: string | null
  limit: number
}

const pageOf = (p: KeyPage, whose: Sql) => sql`
  select ${columns}
  from holdfast.api_key
  where ${whose} and id < coalesce(${p.before}::uuid, ${raw(`'${highestId}'::uuid`)})
    and (${p.ending}::text is null or right(id::text, length(${p.ending})) = ${p.ending}) and (not ${p.isGood}::boolean or (${isGood}))
  order by id desc
  limit ${p.limit}`

/** Pages of keys, newest first. Those of one tenant are found by an index, so that other tenants don't matter. */
export const keyPages = {
  all: statement<KeyRow>()('api_key.list', (p: KeyPage) => pageOf(p, raw('true'))),
  ofTenant: statement<KeyRow>()('api_key.list_tenant', (p: KeyPage) => pageOf(p, sql`tenant = ${p.tenant}`)),
}

/** Revokes a key, with one event, however often it is called. */
export const revokeKey = statement<KeyRow>()(
  'api_key.revoke',
  (p: { id: string; tenant: string | null; by: string | null }) => sql`
  with changed as (
    update holdfast.api_key
    set revoked_at = now(), revoked_by = ${p.by}::text
    where id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant}) and revoked_at is null
    returning ${columns}
  ),
  ${announcing('key.revoked', p.by)}
  select *
  from changed
  union all
  select ${raw('id, name, tenant, scopes, created_at, created_by, expires_at, coalesce(revoked_at, now()), revoked_by, used_at')}
  from holdfast.api_key
  where id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant}) and not exists (select from changed)`,
)

/** Records that keys were just used. A key that another transaction has locked is skipped: the next use is noted. */
export const touchKeys = statement<never>()(
  'api_key.touch',
  (p: { ids: string[] }) => sql`
  update holdfast.api_key
  set used_at = now()
  where id = any(array(
    select id
    from holdfast.api_key
    where id = any(${p.ids}::uuid[])
    for no key update skip locked
  ))`,
)

/** The secret that all servers on this database share. */
export const serverSecret = statement<{ secret: Buffer }>()(
  'server_secret.read',
  () => sql`
  select secret
  from holdfast.server_secret`,
)
