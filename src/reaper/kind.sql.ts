import { raw, sql, statement } from '../postgres/sql.ts'

/** The kinds that open sessions serve, each with the tenant whose rules apply. An empty tenant means all tenants. */
const served = raw(`
    select distinct coalesce(session.tenant, '') as tenant, kind.name
    from holdfast.session
    cross join unnest(session.kinds) as kind (name)
    where session.ended_at is null`)

/** Marks kinds as still served: a worker registers its kinds only when it starts, and may run for years. */
export const refreshKinds = statement<{ name: string }>()(
  'kind.refresh',
  (p: { olderThanMs: number; limit: number }) => sql`
  with served as materialized (${served}),
  stale as materialized (
    select kind.tenant, kind.name
    from holdfast.kind
    join served on served.tenant = kind.tenant and served.name = kind.name
    where kind.seen_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by kind.tenant, kind.name
    limit ${p.limit}
    for update of kind skip locked
  )
  update holdfast.kind
  set seen_at = now()
  from stale
  where kind.tenant = stale.tenant and kind.name = stale.name
  returning kind.name`,
)

/**
 * Removes kinds that no worker has served for long. Their jobs are kept, and are claimed when a worker registers the kind again. A kind with
 * a retention rule stays at least as long as that rule says, because its finished jobs may still need it.
 */
export const forgetKinds = statement<{ name: string }>()(
  'kind.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  with served as materialized (${served}),
  old as materialized (
    select kind.tenant, kind.name
    from holdfast.kind
    where kind.seen_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
      and kind.seen_at < now() - coalesce((select max(rule.value::float8) from json_each_text(kind.keep) as rule), 0) * interval '1 ms'
      and (kind.tenant, kind.name) not in (select tenant, name from served)
    order by kind.seen_at
    limit ${p.limit}
    for update of kind skip locked
  )
  delete from holdfast.kind
  using old
  where kind.tenant = old.tenant and kind.name = old.name
  returning kind.name`,
)
