import type { MoveName } from '../job/machine.ts'
import { raw, type Sql, sql, statement, target, textOf } from '../store/sql.ts'
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

const given = 'job.id, job.kind, job.queue, job.tenant'
const numbers = (of: string) => `${of}.stage, ${of}.attempt, ${of}.failures, ${of}.crashes, job.priority, job.submitted_at, job.barrier_id`
const noTimes = 'null::timestamptz as run_at, null::timestamptz as deadline_at, null::bigint as session_id'
const notEnded = 'null::timestamptz as finished_at, null::json as error'
const queued = raw(`${given}, ${word('submit')} as state, ${numbers('place')}, place.run_at, null::timestamptz as deadline_at, null::bigint as session_id, ${notEnded}`)
const waiting = raw(`${given}, ${word('fanOut')} as state, ${numbers('place')}, ${noTimes}, ${notEnded}`)
const held = raw(`${given}, ${word('claim')} as state, ${numbers('place')}, null::timestamptz as run_at, place.deadline_at, place.session_id, ${notEnded}`)
const ended = raw(`${given}, place.state, ${numbers('place')}, ${noTimes}, place.finished_at, place.error`)

function word(move: MoveName): string {
  return textOf(target(move))
}

/** Those of the scanned rows that fit. Behind `reached` nobody has looked; it is null if every scan came to its end. */
function pageOf(p: PageFilter, scanned: Sql): Sql {
  return sql`
  with scanned as materialized (${scanned}),
  fitting as (
    select *
    from scanned as job
    where job.state is not null and (${p.kind}::text is null or job.kind = ${p.kind})
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

const range = (p: PageFilter, id: string) => sql`${raw(id)} < ${p.below}::uuid and ${raw(id)} >= ${p.from}::uuid`

/** The latest rows of a table that says where jobs are, with their jobs. */
function scan(p: PageFilter, { table, columns, also = raw('true') }: { table: string; columns: Sql; also?: Sql }): Sql {
  return sql`
    (select ${columns}, ${raw(`'${table}'`)} as lane
    from (
      select *
      from holdfast.${raw(table)} as place
      where ${range(p, 'place.job_id')} and ${also}
      order by place.job_id desc
      limit ${p.most}
    ) as place
    cross join lateral (select * from holdfast.job where job.id = place.job_id limit 1) as job
    order by job.id desc)`
}

/** Those that run. None is left out, so no scan is cut short: each row is a lane of its own. */
const running = (p: PageFilter) => sql`
    (select ${held}, job.id::text as lane
    from holdfast.running as place
    cross join lateral (select * from holdfast.job where job.id = place.job_id limit 1) as job
    where place.high_id >= ${p.from}::uuid and place.low_id < ${p.below}::uuid and ${range(p, 'place.job_id')})`

// the index of tenants leaves the usual one out, which pays nothing for it
const ofOne = (p: PageFilter) => sql`place.tenant = ${p.tenant} and place.tenant <> 'default'`

const live = (p: PageFilter, ready: Sql) => pageOf(p, sql`${ready}
    union all ${scan(p, { table: 'waiting', columns: waiting })}
    union all ${running(p)}`)

/**
 * Pages of jobs, the latest first. Each looks at a bounded number of rows by a key, so neither depth nor a filter that fits nearly nothing
 * makes it slow; the price is a page that may be short although more comes. The texts differ where the plans must.
 */
export const pages = {
  live: statement<PageRow>()('live_job.page', (p: PageFilter) =>
    live(p, scan(p, { table: 'ready', columns: queued })),
  ),
  liveOfTenant: statement<PageRow>()('live_job.page_tenant', (p: PageFilter) =>
    live(p, scan(p, { table: 'ready', columns: queued, also: ofOne(p) })),
  ),
  running: statement<PageRow>()('live_job.page_running', (p: PageFilter) => pageOf(p, running(p))),
  finished: statement<PageRow>()('outcome.page', (p: PageFilter) =>
    pageOf(p, scan(p, { table: 'outcome', columns: ended })),
  ),
  finishedOfTenant: statement<PageRow>()('outcome.page_tenant', (p: PageFilter) =>
    pageOf(
      p,
      sql`
    select ${ended}, 'tenant' as lane
    from (
      select *
      from holdfast.job
      where job.tenant = ${p.tenant} and job.tenant <> 'default' and ${range(p, 'job.id')}
      order by job.id desc
      limit ${p.most}
    ) as job
    left join lateral (select * from holdfast.outcome where outcome.job_id = job.id limit 1) as place on true`,
    ),
  ),
  /** What went wrong is rare among what went well, and has an index of its own. */
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
