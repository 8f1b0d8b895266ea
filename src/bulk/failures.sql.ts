import { raw, type Sql, sql, statement, target } from '../postgres/sql.ts'

/** Which failed jobs to group; null means any. */
export interface FailureScan {
  tenant: string | null
  kind: string | null
  endedSince: string | null
  hasItems: boolean
  /** Only ids below this one. */
  below: string
  /** How many rows to scan at most. */
  most: number
}

/** Failed jobs of one kind with the same error, among the rows that were scanned. */
export interface FailureRow {
  kind: string | null
  code: string
  pattern: string
  count: number
  latest_id: string
  latest_at: Date
  first_at: Date
  message: string
  /** How many failed jobs were scanned that have another error than the first thousand. */
  left_out: number
  /** The last row that was scanned; null if the scan reached its end. */
  reached: string | null
}

const failed = target('fail', 'failed')

/** The same for messages that differ only in numbers and ids. Only the start of a message is compared, and shown. */
const patternOf = raw(
  `regexp_replace(left(ended.error ->> 'message', 200), '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|[0-9]+', '#', 'gi')`,
)

/** Groups what a scan found. */
const grouped = (p: FailureScan, scanned: Sql): Sql => sql`
  with scanned as materialized (${scanned}),
  ended as materialized (
    select ended.job_id, ended.kind, ended.finished_at, coalesce(ended.error ->> 'code', '') as code, coalesce(${patternOf}, '') as pattern,
      coalesce(left(ended.error ->> 'message', 500), '') as message
    from scanned as ended
    where ended.state = ${failed} and (${p.kind}::text is null or ended.kind = ${p.kind}) and (${p.hasItems}::boolean or ended.barrier_id is null)
      and (${p.tenant}::text is null or ended.tenant = ${p.tenant}) and (${p.endedSince}::timestamptz is null or ended.finished_at >= ${p.endedSince}::timestamptz)
  ),
  sorted as (
    select kind, code, pattern, count(*) as count, (array_agg(job_id order by finished_at desc, job_id desc))[1] as latest_id,
      max(finished_at) as latest_at, min(finished_at) as first_at, (array_agg(message order by finished_at desc, job_id desc))[1] as message
    from ended
    group by kind, code, pattern
    order by count(*) desc
    limit 1000
  )
  select sorted.*, edge.reached, (select count(*) from ended) - (select coalesce(sum(count), 0) from sorted)::bigint as left_out
  from (select case when count(*) >= ${p.most}::int then min(id::text) end as reached from scanned) as edge
  left join sorted on true`

/** Compares pairs, because a planner without statistics expects few rows in a range of one column, and would read and sort all of it. */
const below = (p: FailureScan, id: string): Sql => sql`${raw(`(${id}, ${id})`)} < (${p.below}::uuid, ${p.below}::uuid)`

/** Failed jobs, newest first, by the index of jobs that did not succeed. */
export const groupFailures = statement<FailureRow>()('outcome.group_failures', (p: FailureScan) =>
  grouped(
    p,
    sql`
    select ended.job_id as id, ended.*
    from holdfast.outcome as ended
    where ended.state = ${failed} and ended.state <> 'succeeded' and ${below(p, 'ended.job_id')}
    order by ended.job_id desc
    limit ${p.most}`,
  ),
)

/** The same for one tenant, by the index of its jobs: how many others have does not matter. */
export const groupFailuresOfTenant = statement<FailureRow>()('outcome.group_failures_tenant', (p: FailureScan) =>
  grouped(
    p,
    sql`
    select job.id, ended.*
    from (
      select job.id
      from holdfast.job
      where (job.tenant, job.id) < (${p.tenant}::text, ${p.below}::uuid) and (job.tenant, job.id) >= (${p.tenant}::text, '00000000-0000-0000-0000-000000000000'::uuid)
        and job.tenant <> 'default'
      order by job.tenant desc, job.id desc
      limit ${p.most}
    ) as job
    left join lateral (select * from holdfast.outcome where outcome.job_id = job.id limit 1) as ended on true`,
  ),
)
