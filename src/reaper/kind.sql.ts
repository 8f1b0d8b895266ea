import { raw, sql, statement } from '../store/sql.ts'

/** The kinds that living sessions serve, each under whose rules it stands; the empty tenant stands for all. */
const served = raw(`
    select distinct coalesce(session.tenant, '') as tenant, kind.name
    from holdfast.session
    cross join unnest(session.kinds) as kind (name)
    where session.ended_at is null`)

/** Notes that kinds are still served: a worker registers them only when it starts, and may run for years. */
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

/** Forgets kinds that nobody has served for long. A job of such a kind is kept, and is claimed when a worker registers the kind again. */
export const forgetKinds = statement<{ name: string }>()(
  'kind.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  with served as materialized (${served}),
  old as materialized (
    select kind.tenant, kind.name
    from holdfast.kind
    where kind.seen_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
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
