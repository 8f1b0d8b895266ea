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

/** A row of a page, and the last row that was looked at: beyond it nobody knows. */
type PageRow = Omit<JobRow, 'id'> & { id: string | null; reached: string | null }

const shared =
  'job.id, job.kind, job.queue, job.tenant, job.state, job.stage, job.attempt, job.failures, job.crashes, job.priority, job.submitted_at, job.barrier_id'
const live = `${shared}, job.run_at, job.deadline_at, job.session_id, null::timestamptz as finished_at, null::json as error`
const finished = `${shared}, null::timestamptz as run_at, null::timestamptz as deadline_at, null::bigint as session_id, job.finished_at, job.error`

const fits = (p: PageFilter) => sql`(${p.kind}::text is null or job.kind = ${p.kind})
      and (${p.queue}::text is null or job.queue = ${p.queue})
      and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and (${p.states}::text[] is null or job.state = any(${p.states}::text[]))
      and (${p.hasItems}::boolean or job.barrier_id is null)`

/** Those of the scanned rows that fit. Behind `reached` nobody has looked; it is null if every scan came to its end. */
function pageOf(p: PageFilter, scanned: Sql): Sql {
  return sql`
  with scanned as materialized (${scanned}),
  fitting as (
    select *
    from scanned as job
    where ${fits(p)}
    order by job.id desc
    limit ${p.limit}
  )
  select fitting.*, edge.reached
  from (
    select max(last) as reached
    from (select min(id::text) as last from scanned group by lane having count(*) >= ${p.most}) as full_scan
  ) as edge
  left join fitting on true
  order by fitting.id desc`
}

const range = (p: PageFilter) => sql`job.id < ${p.below}::uuid and job.id >= ${p.from}::uuid`

function scan(p: PageFilter, table: string, columns: string): Sql {
  return sql`
    select ${raw(columns)}, '' as lane
    from holdfast.${raw(table)} as job
    where ${range(p)}
    order by job.id desc
    limit ${p.most}`
}

/** The same without a look at what the rows hold but to compare it: for whoever passes over many rows of others. */
function passing(p: PageFilter, table: string, columns: string): Sql {
  return sql`
  select fitting.*, edge.reached::text as reached
  from (
    select (
      select job.id
      from holdfast.${raw(table)} as job
      where ${range(p)}
      order by job.id desc
      offset ${p.most}::int - 1
      limit 1
    ) as reached
  ) as edge
  left join lateral (
    select ${raw(columns)}
    from holdfast.${raw(table)} as job
    where ${range(p)} and job.id >= coalesce(edge.reached, ${p.from}::uuid) and ${fits(p)}
    order by job.id desc
    limit ${p.limit}
  ) as fitting on true
  order by fitting.id desc`
}

/** The index of tenants leaves the usual one out, which pays nothing for it. Pairs are compared, because no other index has them in that order: whatever the statistics say, rows of others are not walked. */
function scanOfTenant(p: PageFilter, table: string, columns: string): Sql {
  return sql`
    select ${raw(columns)}, '' as lane
    from holdfast.${raw(table)} as job
    where (job.tenant, job.id) < (${p.tenant}::text, ${p.below}::uuid) and (job.tenant, job.id) >= (${p.tenant}::text, ${p.from}::uuid) and job.tenant <> 'default'
    order by job.tenant desc, job.id desc
    limit ${p.most}`
}

/**
 * Pages of jobs, the latest first. Each looks at a bounded number of rows by a key, so neither depth nor a filter that fits nearly nothing
 * makes it slow; the price is a page that may be short although more comes. The texts differ where the plans must.
 */
export const pages = {
  live: statement<PageRow>()('live_job.page', (p: PageFilter) => pageOf(p, scan(p, 'live_job', live))),
  liveOfTenant: statement<PageRow>()('live_job.page_tenant', (p: PageFilter) =>
    pageOf(p, scanOfTenant(p, 'live_job', live)),
  ),
  liveOfDefault: statement<PageRow>()('live_job.page_default', (p: PageFilter) => passing(p, 'live_job', live)),
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
  finished: statement<PageRow>()('finished_job.page', (p: PageFilter) => pageOf(p, scan(p, 'finished_job', finished))),
  finishedOfTenant: statement<PageRow>()('finished_job.page_tenant', (p: PageFilter) =>
    pageOf(p, scanOfTenant(p, 'finished_job', finished)),
  ),
  finishedOfDefault: statement<PageRow>()('finished_job.page_default', (p: PageFilter) =>
    passing(p, 'finished_job', finished),
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
