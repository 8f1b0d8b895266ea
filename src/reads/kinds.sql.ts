import type { KeptMs } from '../job/keep.ts'
import { sql, statement } from '../postgres/sql.ts'

/** A registered kind. An empty tenant means all tenants. */
export interface KindRow {
  tenant: string
  name: string
  queue: string
  priority: number
  crash_budget: number
  stages: { name: string; optional: boolean; signal?: string }[]
  keep: KeptMs | null
  seen_at: Date
}

/** A page of registered kinds: those for all tenants first, then those of one tenant, or of each. */
export const listKinds = statement<KindRow>()(
  'kind.list',
  (p: { tenant: string | null; after: { tenant: string; name: string } | null; limit: number }) => sql`
  select tenant, name, queue, priority, crash_budget, stages, keep, seen_at
  from holdfast.kind
  where (${p.tenant}::text is null or tenant in ('', ${p.tenant}))
    and (${p.after?.name ?? null}::text is null or (tenant, name) > (${p.after?.tenant ?? ''}::text, ${p.after?.name ?? ''}::text))
  order by tenant, name
  limit ${p.limit}`,
)

/** The kind with this name that applies to the jobs of a tenant. */
export const findKind = statement<KindRow>()(
  'kind.find',
  (p: { tenant: string; name: string }) => sql`
  select tenant, name, queue, priority, crash_budget, stages, keep, seen_at
  from holdfast.kind
  where tenant in ('', ${p.tenant}) and name = ${p.name}
  order by tenant
  limit 1`,
)

/** Names of kinds before and after a name in alphabetical order, as far as the tenant may see them: two short ranges of the key. */
export const nearKinds = statement<{ name: string }>()(
  'kind.near',
  (p: { tenant: string; name: string; limit: number }) => sql`
  select distinct near.name
  from unnest(array['', ${p.tenant}::text]) as whose (tenant)
  cross join lateral (
    (select kind.name from holdfast.kind where kind.tenant = whose.tenant and kind.name > ${p.name} order by kind.name limit ${p.limit})
    union all
    (select kind.name from holdfast.kind where kind.tenant = whose.tenant and kind.name < ${p.name} order by kind.name desc limit ${p.limit})
  ) as near
  order by near.name`,
)
