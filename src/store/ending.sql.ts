import type { MoveName } from '../job/machine.ts'
import { areBitsSet } from './lease.sql.ts'
import { eventOf, raw, type Sql, sql } from './sql.ts'
import { wakeIdle } from './wake.sql.ts'

/**
 * How jobs end. `gone` is a CTE with a row for each, as it left the place where it was: id, kind, own_tenant, session_id, attempt, stage,
 * failures, crashes, is_flawed, barrier_id. `marked` and `emptied` are CTEs that set bits in leases.
 */
export interface Ending {
  move: MoveName
  /** The final state of a row. */
  state: Sql
  /** The error of a row, as json. */
  error: Sql
  /** What the event tells, as json. */
  data: Sql
  failures?: Sql
  crashes?: Sql
}

/** How many items of a barrier did not succeed. */
const flaws = 'barrier.failed + counted.failed + barrier.cancelled + counted.cancelled'
const settled = `barrier.succeeded + counted.succeeded + ${flaws}`
/** A counter with what was counted now. Counters that exceed the total have drifted: then the ledger is counted instead. */
const counter = (name: 'succeeded' | 'failed' | 'cancelled') =>
  raw(
    `case when ${settled} > barrier.total then (holdfast.barrier_ledger(barrier.id)).${name} else barrier.${name} end + counted.${name}`,
  )
const ledgerFlaws = 'holdfast.barrier_flaws(barrier.id) + counted.failed + counted.cancelled'

/**
 * How many flaws a barrier tolerates; a share is known only once the total is. 0.29 × 100 is 28.999999999999996 to a computer, so what is
 * that close to a whole number is taken for it.
 */
export function tolerated(total: string): Sql {
  return raw(
    `greatest(coalesce(barrier.tolerate_count, 0), floor(coalesce(barrier.tolerate_share, 0) * coalesce(${total}, 0) + 1e-9))`,
  )
}

/**
 * What every ending of jobs has in common, as CTEs: their outcomes are kept, announced, and counted in the barriers that they are items of;
 * and whoever counts the last item of an armed barrier puts its parent back in the queue.
 *
 * The barrier's row decides who is last: the update waits for every other settle of the same barrier and then sees its counts, so
 * exactly one finds the sum complete.
 *
 * The counters say when to look at the ledger, and the ledger decides: counters that drifted join nothing early, and stop nothing. So the
 * look costs once per barrier. What this statement itself ends has left its place by then, and its outcome is not yet to be seen.
 */
export function ending({
  move,
  state,
  error,
  data,
  failures = raw('failures'),
  crashes = raw('crashes'),
}: Ending): Sql {
  return sql`
  kept as (
    insert into holdfast.outcome (job_id, state, finished_at, attempt, stage, failures, crashes, is_flawed, barrier_id, error)
    select id, ${state}, now(), attempt, stage, ${failures}, ${crashes}, is_flawed, barrier_id, ${error}
    from gone
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf(move)}, ${state}, id, kind, own_tenant, session_id, attempt, stage, ${data}
    from gone
  ),
  counted as (
    select barrier_id, count(*) filter (where ended.state in ('succeeded', 'partial')) as succeeded,
      count(*) filter (where ended.state = 'failed') as failed, count(*) filter (where ended.state = 'cancelled') as cancelled
    from (select barrier_id, ${state} as state from gone where barrier_id is not null) as ended
    group by barrier_id
  ),
  ordered as materialized (
    select barrier.id
    from holdfast.barrier
    where barrier.id in (select barrier_id from counted) and ${areBitsSet}
    order by barrier.id
    for no key update
  ),
  bumped as (
    update holdfast.barrier
    set succeeded = ${counter('succeeded')}, failed = ${counter('failed')}, cancelled = ${counter('cancelled')}, moved_at = now(),
      stopped_at = case when barrier.stopped_at is null and barrier.sealed_at is not null and ${raw(flaws)} > ${tolerated('barrier.total')}
        then case when ${raw(ledgerFlaws)} > ${tolerated('barrier.total')} then now() end else barrier.stopped_at end,
      joined_at = case when barrier.joined_at is null and barrier.armed_at is not null and ${raw(settled)} >= barrier.total
        then case when holdfast.barrier_drained(barrier.id) then now() end else barrier.joined_at end
    from counted, ordered
    where barrier.id = counted.barrier_id and barrier.id = ordered.id
    returning barrier.id, barrier.stopped_at is not distinct from now() and barrier.joined_at is null as is_stopped,
      ${joiningIf('barrier.joined_at is not distinct from now()')}
  )`
}

/**
 * Puts the parent of a barrier that has just joined back in its queue, with the event; as a column of what an update of barriers returns,
 * because that is computed for every row, whoever reads it. By a function with a snapshot of its own: the parent may have begun to wait
 * after this statement began.
 */
export function joiningIf(condition: string): Sql {
  return raw(`case when ${condition} then holdfast.join_parent(barrier.job_id) else false end as is_joined`)
}

/** Wakes a worker if a join put a parent back in its queue: whoever ended the last item may not know the parent's kind. */
export const wakeIfJoined: Sql = sql`case when exists (select from bumped where is_joined) then ${wakeIdle} end`
