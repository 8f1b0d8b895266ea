import { type ItemCount, itemCounts } from '../job/fan-out.ts'
import type { MoveName } from '../job/machine.ts'
import { eventOf, raw, type Sql, sql, statement, target, textOf } from '../postgres/sql.ts'
import { countItems, endedOf, failedOf, isOverThreshold } from './barrier-counters.sql.ts'
import { areBitsSet, requeueing } from './leases.sql.ts'
import { wakeIdle } from './wake.sql.ts'

/**
 * How jobs end. `gone` is a CTE with a row for each, as it left the table it was in: id, kind, own_tenant, session_id, attempt, stage,
 * failures, crashes, is_flawed, barrier_id. `marked` and `emptied` are CTEs that set bits in leases.
 */
export interface Ending {
  move: MoveName
  /** The final state of a row. */
  state: Sql
  /** The error of a row, as json. */
  error: Sql
  /** The data of the event, as json. */
  data: Sql
  failures?: Sql
  crashes?: Sql
}

const succeeded = target('finish', 'succeeded')

/** How many items have ended, by the counters and what this statement adds to them. */
const ended = textOf(sql`${endedOf('barrier')} + ${endedOf('counted')}`)
const isOverByCounters = isOverThreshold(sql`${failedOf('barrier')} + ${failedOf('counted')}`)
/** The ledger does not show yet what this statement ends. */
const isOverByLedger = isOverThreshold(sql`holdfast.failed_items(barrier.id) + ${failedOf('counted')}`)

/** Adds to a counter. If the counters exceed the total they have drifted, and the ledger is counted instead. */
function bump(count: ItemCount): string {
  return `${count} = case when ${ended} > barrier.total then (holdfast.barrier_ledger(barrier.id)).${count} else barrier.${count} end + counted.${count}`
}

const bumpAll = raw(itemCounts.map(bump).join(', '))

/**
 * What every ending of jobs has in common, as CTEs: it stores their outcomes, announces them (a successful outcome is its own event), and
 * counts them in the barriers that they are items of. The statement that counts the last item of an armed barrier puts its parent back in the queue.
 *
 * The barrier's row decides who is last: the update waits for every other settle of the same barrier and then sees its counts, so
 * exactly one finds the sum complete.
 *
 * The counters say when to look at the ledger, and the ledger decides: counters that drifted neither join early nor stop anything. So
 * the ledger is read about once per barrier. By then, what this statement ends has left its table, and its outcome is not visible yet.
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
    insert into holdfast.outcome (job_id, state, kind, tenant, session_id, finished_at, attempt, stage, failures, crashes, is_flawed, barrier_id, error)
    select id, ${state}, kind, own_tenant, session_id, now(), attempt, stage, ${failures}, ${crashes}, is_flawed, barrier_id, ${error}
    from gone
  ),
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf(move)}, state, id, kind, own_tenant, session_id, attempt, stage, ${data}
    from (select *, ${state} as state from gone) as gone
    where state <> ${succeeded}
  ),
  counted as (
    select barrier_id, ${countItems('ended.state')}
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
    set ${bumpAll}, moved_at = now(),
      stopped_at = case when barrier.stopped_at is null and barrier.sealed_at is not null and ${isOverByCounters}
        then case when ${isOverByLedger} then now() end else barrier.stopped_at end,
      joined_at = case when barrier.joined_at is null and barrier.armed_at is not null and ${raw(ended)} >= barrier.total
        then case when holdfast.barrier_drained(barrier.id) then now() end else barrier.joined_at end
    from counted, ordered
    where barrier.id = counted.barrier_id and barrier.id = ordered.id
    returning barrier.id, barrier.stopped_at is not distinct from now() and barrier.joined_at is null as is_stopped,
      ${joiningIf('barrier.joined_at is not distinct from now()')}
  )`
}

/**
 * Puts the parent of a barrier that has just joined back in its queue, with the event. It is a column of what an update of barriers returns,
 * because Postgres computes that for every row even if nothing reads it. The function has its own snapshot: the parent may have begun to wait
 * after this statement started.
 */
export function joiningIf(condition: string): Sql {
  return raw(`case when ${condition} then holdfast.join_parent(barrier.job_id) else false end as is_joined`)
}

/** Wakes a worker if a join put a parent back in its queue: the worker that ended the last item may not handle the parent's kind. */
export const wakeIfJoined: Sql = sql`case when exists (select from bumped where is_joined) then ${wakeIdle} end`

/**
 * Defines the function that puts a job whose barrier has joined back in its queue, and says whether it was waiting. It is volatile, so it has
 * its own snapshot.
 */
export const joinDefinition = statement<never>()(
  'define.join_parent',
  () => sql`
  create or replace function holdfast.join_parent(parent uuid) returns boolean language plpgsql volatile set enable_seqscan = off as $$
  begin
    with back as (
      delete from holdfast.waiting where waiting.job_id = parent returning waiting.job_id as id, waiting.*
    ),
    queued as (${requeueing({ source: 'back', runAt: raw('now()') })}
      returning ready.*
    )
    insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage)
    select ${eventOf('join')}, ${target('join')}, queued.job_id, queued.kind, queued.tenant, queued.attempt, queued.stage
    from queued;
    return found;
  end $$`,
)
