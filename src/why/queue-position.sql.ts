import { raw, type Sql, sql } from '../postgres/sql.ts'
import { mostAhead } from './facts.ts'

const most = raw(String(mostAhead))
/** How many jobs that fell due at the same moment are compared with the row `job`. */
const mostTied = raw('20000')
const inLane = raw('other.queue = job.queue and other.kind = job.kind')

/**
 * How many due jobs of its kind are ahead of the row `job`, if it is due itself. Jobs of one bulk submit fall due at the same moment, and are claimed in
 * the order in which they were written: lower ids go first. Each priority is counted separately, because together they would be one range of the
 * index, which includes all jobs that are scheduled for later. The orders keep a planner on that index.
 */
export const ahead: Sql = sql`case when job.run_at <= now() then least(${most}, (
      select count(*)
      from (
        select
        from generate_series(1, job.priority - 1) as rank (priority)
        cross join lateral (
          select
          from holdfast.ready as other
          where ${inLane} and other.priority = rank.priority and other.run_at <= now()
          order by other.run_at
          limit ${most}
        ) as urgent
        limit ${most}
      ) as urgent
    ) + (
      select count(*)
      from (
        select
        from holdfast.ready as other
        where ${inLane} and other.priority = job.priority and other.run_at < job.run_at
        order by other.run_at
        limit ${most}
      ) as earlier
    ) + (
      select count(*) filter (where tied.job_id < job.id)
      from (
        select other.job_id
        from holdfast.ready as other
        where ${inLane} and other.priority = job.priority and other.run_at between job.run_at and job.run_at
        order by other.run_at
        limit ${mostTied}
      ) as tied
    )) end`
