import { eventOf, raw, type Sql, sql, statement, target } from '../postgres/sql.ts'

/**
 * The sources of the log. A job's row is the event that it was submitted, and its outcome the event that it succeeded; all other events are
 * in `event_log`. A transaction gets its id before it draws a number (see src/events/horizon.ts): the column defaults ensure that.
 */
const sources = [
  sql`
    select told.seq, told.txid::xid as txid, told.at, told.job_id, told.session_id, told.attempt, told.stage, told.type, told.state, told.kind, told.tenant, told.data
    from holdfast.event_log as told`,
  sql`
    select job.seq, job.xmin, job.submitted_at, job.id, null::bigint, 0, job.stage, ${eventOf('submit')}, ${target('submit')}, job.kind, job.tenant, null::json
    from holdfast.job`,
  sql`
    select outcome.seq, outcome.xmin, outcome.finished_at, outcome.job_id, outcome.session_id, outcome.attempt, outcome.stage, ${eventOf('finish')},
      outcome.state, outcome.kind, outcome.tenant, null::json
    from holdfast.outcome
    where outcome.state = ${target('finish', 'succeeded')}`,
]

const columns = raw('seq, txid, at, job_id, session_id, attempt, stage, type, state, kind, tenant, data')

function union(parts: readonly Sql[]): Sql {
  return parts.reduce((all, one) => sql`${all}\n    union all ${one}`)
}

/** Reads the log. `end` is applied to each of its sources: a condition on `event`, an order and a limit. */
export function fromLog(end: Sql): Sql {
  return union(sources.map((source) => sql`(select * from (${source}) as event (${columns}) ${end})`))
}

/**
 * A function that reads at most so many events after a position, of one tenant or of all. With its settings the planner can only scan an index,
 * in order. Otherwise, if it expected few events it would read and sort all of them, and if it expected many of a tenant it would scan those of
 * other tenants. The tenant indexes exclude the default tenant.
 */
function reading(name: 'events_after' | 'events_of_tenant'): Sql {
  const isOfOne = name === 'events_of_tenant'
  const [key, from, to] = isOfOne
    ? ['event.tenant, event.seq', 'wanted, behind', 'wanted, up_to']
    : ['event.seq', 'behind', 'up_to']
  const those =
    raw(`where (${key}) > (${from}) and (${key}) <= (${to})${isOfOne ? ` and event.tenant <> 'default'` : ''}
      order by ${key} limit most`)
  return sql`
    create or replace function holdfast.${raw(name)}(${raw(isOfOne ? 'wanted text, ' : '')}behind bigint, up_to bigint, most int) returns setof holdfast.event
    language plpgsql stable set enable_sort = off set enable_incremental_sort = off set enable_seqscan = off set enable_bitmapscan = off
    set plan_cache_mode = force_generic_plan set jit = off as $$
    begin
      return query
        select *
        from (${fromLog(those)}
        ) as event
        order by event.seq
        limit most;
    end $$`
}

/** Defines the log as a view, and the functions that read it in order. */
export const logDefinitions = [
  statement<never>()('define.event', () => sql`create or replace view holdfast.event as ${union(sources)}`),
  statement<never>()('define.events_after', () => reading('events_after')),
  statement<never>()('define.events_of_tenant', () => reading('events_of_tenant')),
]
