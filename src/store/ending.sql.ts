import type { MoveName } from '../job/machine.ts'
import { eventOf, legal, raw, type Sql, sql, target } from './sql.ts'
import { wakeIdle } from './wake.sql.ts'

/** How rows end. `gone` is a CTE that holds them whole, as they left the live table. */
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
 * What every ending of jobs has in common, as CTEs: they are kept as finished, announced, and counted in the barriers that they
 * are items of; and whoever counts the last item of an armed barrier puts its parent back in the queue.
 *
 * The barrier's row decides who is last: the update waits for every other settle of the same barrier and then sees its counts, so
 * exactly one finds the sum complete. The parent may have been claimed and sealed after this statement began; its row then still looks
 * `queued` or `running` to us until the update takes a second look, which is why the guard lets these pass. That it does wait is
 * certain all the same: a barrier that is armed and not joined says so, and nobody arms one without making its job wait.
 *
 * The counters say when to look at the ledger, and the ledger decides: counters that drifted join nothing early, and stop nothing. So the
 * look costs once per barrier. What this statement itself ends is gone from the live table by then, and not yet in the finished one.
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
    insert into holdfast.finished_job (id, kind, queue, tenant, state, stage, attempt, failures, crashes, crash_budget, priority, submitted_at,
      finished_at, barrier_id, position, is_part, is_flawed, input, error)
    select id, kind, queue, tenant, ${state}, stage, attempt, ${failures}, ${crashes}, crash_budget, priority, submitted_at,
      now(), barrier_id, position, is_part, is_flawed, input, ${error}
    from gone
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf(move)}, ${state}, id, kind, tenant, session_id, attempt, stage, ${data}
    from gone
  ),
  counted as (
    select barrier_id, count(*) filter (where ended.state in ('succeeded', 'partial')) as succeeded,
      count(*) filter (where ended.state = 'failed') as failed, count(*) filter (where ended.state = 'cancelled') as cancelled
    from (select barrier_id, ${state} as state from gone where barrier_id is not null) as ended
    group by barrier_id
  ),
  held as materialized (
    select barrier.id
    from holdfast.barrier
    where barrier.id in (select barrier_id from counted)
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
    from counted, held
    where barrier.id = counted.barrier_id and barrier.id = held.id
    returning barrier.id, barrier.job_id, barrier.joined_at is not distinct from now() as is_joined,
      barrier.stopped_at is not distinct from now() and barrier.joined_at is null as is_stopped
  ),
  ${joining('bumped')}`
}

/** Puts the parents of joined barriers back in their queues, with the event. `source` has job_id and is_joined. */
export function joining(source: string): Sql {
  return sql`joined as (
    update holdfast.live_job as job
    set state = ${target('join')}, run_at = now(), session_id = null, deadline_at = null
    from ${raw(source)} as source
    where source.is_joined and job.id = source.job_id and (${legal('join')} or ${legal('fanOut')} or ${legal('claim')})
    returning job.id, job.kind, job.tenant, job.attempt, job.stage
  ),
  join_announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage)
    select ${eventOf('join')}, ${target('join')}, id, kind, tenant, attempt, stage
    from joined
  )`
}

/** Wakes a worker if a join put a parent back in its queue: whoever ended the last item may not know the parent's kind. */
export const wakeIfJoined: Sql = sql`case when exists (select from joined) then ${wakeIdle} end`
