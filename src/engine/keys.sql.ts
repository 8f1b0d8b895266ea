import { sql, statement } from '../store/sql.ts'

/** An API key, as the database knows it. */
export interface KeyRow {
  id: string
  name: string
  tenant: string | null
  scopes: string[]
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
  used_at: Date | null
}

/** Adds a key. */
export const createKey = statement<KeyRow>()(
  'api_key.create',
  (p: {
    id: string
    name: string
    hash: Buffer
    tenant: string | null
    scopes: string[]
    expiresMs: number | null
  }) => sql`
  insert into holdfast.api_key (id, name, hash, tenant, scopes, expires_at)
  values (${p.id}::uuid, ${p.name}, ${p.hash}::bytea, ${p.tenant}::text, ${p.scopes}::text[], now() + ${p.expiresMs}::float8 * interval '1 ms')
  returning id, name, tenant, scopes, created_at, expires_at, revoked_at, used_at`,
)

/** The key of that id, if it is good at this moment. */
export const findKey = statement<KeyRow & { hash: Buffer }>()(
  'api_key.find',
  (p: { id: string }) => sql`
  select id, name, tenant, scopes, created_at, expires_at, revoked_at, used_at, hash
  from holdfast.api_key
  where id = ${p.id}::uuid and revoked_at is null and (expires_at is null or expires_at > now())`,
)

/** All keys, the latest first. */
export const listKeys = statement<KeyRow>()(
  'api_key.list',
  (p: { tenant: string | null; limit: number }) => sql`
  select id, name, tenant, scopes, created_at, expires_at, revoked_at, used_at
  from holdfast.api_key
  where ${p.tenant}::text is null or tenant = ${p.tenant}
  order by id desc
  limit ${p.limit}`,
)

/** Makes a key useless. */
export const revokeKey = statement<KeyRow>()(
  'api_key.revoke',
  (p: { id: string; tenant: string | null }) => sql`
  update holdfast.api_key
  set revoked_at = coalesce(revoked_at, now())
  where id = ${p.id}::uuid and (${p.tenant}::text is null or tenant = ${p.tenant})
  returning id, name, tenant, scopes, created_at, expires_at, revoked_at, used_at`,
)

/** Notes that keys were used. */
export const touchKeys = statement<never>()(
  'api_key.touch',
  (p: { ids: string[] }) => sql`
  update holdfast.api_key
  set used_at = now()
  where id = any(${p.ids}::uuid[])`,
)

/** The secret that all servers on this database share. */
export const doorSecret = statement<{ secret: Buffer }>()(
  'door.secret',
  () => sql`
  select secret
  from holdfast.door`,
)
