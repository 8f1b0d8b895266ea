import type { MoveName } from '../job/machine.ts'
import { raw, type Sql, sql, statement, target, textOf } from '../postgres/sql.ts'
import type { JobRow } from './job.sql.ts'

/** Which jobs a page contains; null means any. */
export interface PageFilter {
  kind: string | null
  queue: string | null
  tenant: string | null
  states: string[] | null
  hasItems: boolean
  /** Only ids below this one, and at or above that one. */
  below: string
  from: string
  limit: number
  /** How many rows to scan at most for one page. */
  most: number
}

/** A row of a page, and the last row that was scanned: what follows is unknown. */
type PageRow = Omit<JobRow, 'id'> & { id: string | null; reached: string | null }

const given = 'place.job_id as id, job.kind, job.queue, job.tenant'
const numbers = (of: string) =>
  `${of}.stage, ${of}.attempt, ${of}.failures, ${of}.crashes, job.priority, job.submitted_at, job.barrier_id`
const noTimes = 'null::timestamptz as run_at, null::timestamptz as deadline_at, null::bigint as session_id'
const notEnded = 'null::timestamptz as finished_at, null::json as error'
const queued = raw(
  `${given}, ${word('submit')} as state, ${numbers('place')}, place.run_at, null::timestamptz as deadline_at, null::bigint as session_id, ${notEnded}`,
)
const waiting = raw(`${given}, ${word('fanOut')} as state, ${numbers('place')}, ${noTimes}, ${notEnded}`)
const held = raw(
  `${given}, ${word('claim')} as state, ${numbers('place')}, null::timestamptz as run_at, place.deadline_at, place.session_id, ${notEnded}`,
)
const ended = raw(
  `job.id, job.kind, job.queue, job.tenant, place.state, ${numbers('place')}, ${noTimes}, place.finished_at, place.error`,
)

function word(move: MoveName): string {
  return textOf(target(move))
}

/** The matching rows among those scanned. Rows after `reached` were not scanned; it is null if every scan reached its end. */
function pageOf(p: PageFilter, scanned: Sql): Sql {
  return sql`
  with scanned as materialized (${scanned}),
  fitting as (
    select *
    from scanned as job
    where job.kind is not null and job.state is not null
      and (${p.kind}::text is null or job.kind = ${p.kind})
      and (${p.queue}::text is null or job.queue = ${p.queue})
      and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and (${p.states}::text[] is null or job.state = any(${p.states}::text[]))
      and (${p.hasItems}::boolean or job.barrier_id is null)
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

/** Compares pairs, because a planner without statistics expects few rows in a range of one column, and would read and sort all of it. */
const range = (p: PageFilter, id: string) => {
  const pair = raw(`(${id}, ${id})`)
  return sql`${pair} < (${p.below}::uuid, ${p.below}::uuid) and ${pair} >= (${p.from}::uuid, ${p.from}::uuid)`
}

/** Whether a job may match, by the columns of the row that says where it is. For others, the job itself is not read. */
const mayFit = (p: PageFilter, row: string) => sql`(${p.tenant}::text is null or ${raw(row)}.tenant = ${p.tenant})
      and (${p.hasItems}::boolean or ${raw(row)}.barrier_id is null)`
const isOfKind = (p: PageFilter, row: string) => sql`(${p.kind}::text is null or ${raw(row)}.kind = ${p.kind})`

/** The latest rows of `ready` or `waiting`, with their jobs. */
function scan(p: PageFilter, { table, columns, walk }: { table: string; columns: Sql; walk: Sql }): Sql {
  const fits = table === 'ready' ? sql`${mayFit(p, 'place')} and ${isOfKind(p, 'place')}` : mayFit(p, 'place')
  return sql`
    (select ${columns}, ${raw(`'${table}'`)} as lane
    from (
      select *
      from holdfast.${raw(table)} as place
      where ${walk}
      limit ${p.most}
    ) as place
    left join lateral (select * from holdfast.job where job.id = place.job_id and ${fits} limit 1) as job on true)`
}

/** The latest jobs, with the outcome of those that have one. */
const scanJobs = (p: PageFilter, walk: Sql) => sql`
    select ${ended}, '' as lane
    from (
      select *
      from holdfast.job
      where ${walk}
      limit ${p.most}
    ) as job
    left join lateral (
      select * from holdfast.outcome where outcome.job_id = job.id and ${mayFit(p, 'job')} and ${isOfKind(p, 'job')} limit 1
    ) as place on true`

/** By the id alone. */
const byId = (p: PageFilter, id: string) => sql`${range(p, id)} order by ${raw(id)} desc`

/**
 * By the index of tenants, which leaves out the tenant `default`, so that it costs nothing there. It compares pairs, because no other index has
 * that order: whatever the statistics say, rows of other tenants are not scanned.
 */
const byTenant = (p: PageFilter, row: string, id: string) => {
  const pair = raw(`(${row}.tenant, ${row}.${id})`)
  return sql`${pair} < (${p.tenant}::text, ${p.below}::uuid) and ${pair} >= (${p.tenant}::text, ${p.from}::uuid)
        and ${raw(`${row}.tenant <> 'default' order by ${row}.tenant desc, ${row}.${id} desc`)}`
}

/** The latest running jobs. There are few leases, so all are scanned, but only a limited number of their jobs are read. */
const running = (p: PageFilter) => sql`
    (select ${held}, 'lease' as lane
    from (
      select *
      from holdfast.running as place
      where place.high_id >= ${p.from}::uuid and place.low_id < ${p.below}::uuid and ${range(p, 'place.job_id')}
        and ${isOfKind(p, 'place')} and (${p.queue}::text is null or place.queue = ${p.queue})
        and (${p.tenant}::text is null or place.tenant is null or place.tenant = ${p.tenant})
      order by place.job_id desc
      limit ${p.most}
    ) as place
    cross join lateral (select * from holdfast.job where job.id = place.job_id limit 1) as job)`

const live = (p: PageFilter, walk: Sql) =>
  pageOf(
    p,
    sql`${scan(p, { table: 'ready', columns: queued, walk })}
    union all ${scan(p, { table: 'waiting', columns: waiting, walk })}
    union all ${running(p)}`,
  )

/**
 * Pages of jobs, newest first. Each scans a bounded number of rows by a key, so neither depth nor a filter that matches almost nothing makes it
 * slow. The price is that a page may be short although more jobs follow. The texts differ where the plans must differ.
 */
export const pages = {
  live: statement<PageRow>()('job.page_live', (p: PageFilter) => live(p, byId(p, 'place.job_id'))),
  liveOfTenant: statement<PageRow>()('job.page_live_tenant', (p: PageFilter) =>
    live(p, byTenant(p, 'place', 'job_id')),
  ),
  running: statement<PageRow>()('job.page_running', (p: PageFilter) => pageOf(p, running(p))),
  finished: statement<PageRow>()('outcome.page', (p: PageFilter) =>
    pageOf(
      p,
      sql`
    select ${ended}, '' as lane
    from (select * from holdfast.outcome as place where ${byId(p, 'place.job_id')} limit ${p.most}) as place
    left join lateral (
      select * from holdfast.job where job.id = place.job_id and ${mayFit(p, 'place')} and ${isOfKind(p, 'place')} limit 1
    ) as job on true`,
    ),
  ),
  finishedOfTenant: statement<PageRow>()('outcome.page_tenant', (p: PageFilter) =>
    pageOf(p, scanJobs(p, byTenant(p, 'job', 'id'))),
  ),
  /** For the tenant `default`, which no index finds among the jobs of other tenants. */
  finishedOfDefault: statement<PageRow>()('outcome.page_default', (p: PageFilter) =>
    pageOf(p, scanJobs(p, byId(p, 'job.id'))),
  ),
  /** Jobs that did not succeed are rare, and have an index of their own. */
  trouble: statement<PageRow>()('outcome.page_trouble', (p: PageFilter) =>
    pageOf(
      p,
      sql`
    select ${ended}, wanted.state as lane
    from unnest(${p.states}::text[]) as wanted (state)
    cross join lateral (
      select *
      from holdfast.outcome as place
      where place.state = wanted.state and place.state <> 'succeeded' and ${range(p, 'place.job_id')}
      order by place.job_id desc
      limit ${p.most}
    ) as place
    cross join lateral (select * from holdfast.job where job.id = place.job_id limit 1) as job`,
    ),
  ),
}
