import { raw, type Sql, sql, statement } from '../store/sql.ts'
import type { JobRow } from './read.sql.ts'

/** What a page may ask for; null means any. */
export interface PageFilter {
  kind: string | null
  queue: string | null
  tenant: string | null
  states: string[] | null
  hasItems: boolean
  /** Ids below this one, and from that one on. */
  below: string
  from: string
  limit: number
  /** How many rows are looked at, at most, for one page. */
  most: number
}

/** A row of a page, the last row that was looked at, beyond which nobody knows, and how many of those looked at are the tenant's. */
type PageRow = Omit<JobRow, 'id'> & { id: string | null; reached: string | null; own: number }

const shared =
  'job.id, job.kind, job.queue, job.tenant, job.state, job.stage, job.attempt, job.failures, job.crashes, job.priority, job.submitted_at, job.barrier_id'
const live = `${shared}, job.run_at, job.deadline_at, job.session_id, null::timestamptz as finished_at, null::json as error`
const finished = `${shared}, null::timestamptz as run_at, null::timestamptz as deadline_at, null::bigint as session_id, job.finished_at, job.error`

/** Those of the scanned rows that fit. Behind `reached` nobody has looked; it is null if every scan came to its end. */
function pageOf(p: PageFilter, scanned: Sql): Sql {
  return sql`
  with scanned as materialized (${scanned}),
  fitting as (
    select *
    from scanned as job
    where (${p.kind}::text is null or job.kind = ${p.kind})
      and (${p.queue}::text is null or job.queue = ${p.queue})
      and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and (${p.states}::text[] is null or job.state = any(${p.states}::text[]))
      and (${p.hasItems}::boolean or job.barrier_id is null)
    order by job.id desc
    limit ${p.limit}
  )
  select fitting.*, edge.reached, edge.own
  from (
    select (
      select max(last)
      from (select min(id::text) as last from scanned group by lane having count(*) >= ${p.most}) as full_scan
    ) as reached, (select count(*) from scanned where scanned.tenant = ${p.tenant}) as own
  ) as edge
  left join fitting on true
  order by fitting.id desc`
}

const range = (p: PageFilter) => sql`job.id < ${p.below}::uuid and job.id >= ${p.from}::uuid`

function scan(p: PageFilter, table: string, columns: string, also: Sql): Sql {
  return sql`
    select ${raw(columns)}, '' as lane
    from holdfast.${raw(table)} as job
    where ${range(p)} and ${also}
    order by job.id desc
    limit ${p.most}`
}

const ofAnyone = raw('true')
// the index of tenants leaves the usual one out, which pays nothing for it
const ofOne = (p: PageFilter) => sql`job.tenant = ${p.tenant} and job.tenant <> 'default'`

/**
 * Pages of jobs, the latest first. Each looks at a bounded number of rows by a key, so neither depth nor a filter that fits nearly nothing
 * makes it slow; the price is a page that may be short although more comes. The texts differ where the plans must.
 */
export const pages = {
  live: statement<PageRow>()('live_job.page', (p: PageFilter) => pageOf(p, scan(p, 'live_job', live, ofAnyone))),
  liveOfTenant: statement<PageRow>()('live_job.page_tenant', (p: PageFilter) =>
    pageOf(p, scan(p, 'live_job', live, ofOne(p))),
  ),
  /** Those that run are few, and found by who holds them. None is left out, so no scan is cut short: each row is a lane of its own. */
  running: statement<PageRow>()('live_job.page_running', (p: PageFilter) =>
    pageOf(
      p,
      sql`
    with recursive holder as (
      (select session_id from holdfast.live_job where session_id is not null order by session_id limit 1)
      union all
      select (
        select next.session_id
        from holdfast.live_job as next
        where next.session_id is not null and next.session_id > holder.session_id
        order by next.session_id
        limit 1
      )
      from holder
      where holder.session_id is not null
    )
    select held.*, held.id::text as lane
    from holder
    cross join lateral (
      select ${raw(live)}
      from holdfast.live_job as job
      where job.session_id = holder.session_id
      offset 0
    ) as held
    where held.id < ${p.below}::uuid and held.id >= ${p.from}::uuid`,
    ),
  ),
  finished: statement<PageRow>()('finished_job.page', (p: PageFilter) =>
    pageOf(p, scan(p, 'finished_job', finished, ofAnyone)),
  ),
  finishedOfTenant: statement<PageRow>()('finished_job.page_tenant', (p: PageFilter) =>
    pageOf(p, scan(p, 'finished_job', finished, ofOne(p))),
  ),
  /** What went wrong is rare among what went well, and has an index of its own. */
  trouble: statement<PageRow>()('finished_job.page_trouble', (p: PageFilter) =>
    pageOf(
      p,
      sql`
    select picked.*, wanted.state as lane
    from unnest(${p.states}::text[]) as wanted (state)
    cross join lateral (
      select ${raw(finished)}
      from holdfast.finished_job as job
      where job.state = wanted.state and job.state <> 'succeeded' and ${range(p)}
      order by job.id desc
      limit ${p.most}
    ) as picked`,
    ),
  ),
}
