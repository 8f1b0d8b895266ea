/**
 * The items of a fan-out, which are its ledger: which of them are live, and how the others count. src/job/fan-out.ts declares what a final
 * state counts as; every statement that counts items takes it from here.
 *
 * The counters of a barrier are a cache of the ledger. They may come from a backup or have been changed by hand, so the ledger decides
 * before a join or a stop. Its functions are volatile: each call has its own snapshot. Their caller holds the row of the barrier, and
 * so sees every settle that was counted before; the snapshot of the calling statement may be older than its wait for that row.
 */
import { countsAs, failedCounts, type ItemCount, itemCounts } from '../job/fan-out.ts'
import { finalStates } from '../job/machine.ts'
import { raw, type Sql, sql, stateList, statement, target, textOf } from '../postgres/sql.ts'

/** Whether an item ended in a state that counts as one of these. `state` is its final state. */
function isCountedAs(counts: readonly ItemCount[], state: string): string {
  const states = finalStates.filter((final) => counts.includes(countsAs[final]))
  return `${state} in (${textOf(stateList(states))})`
}

/** Counts items, as columns with the names of the counters. `state` is the final state of an item. */
export function countItems(state: string): Sql {
  return raw(itemCounts.map((count) => `count(*) filter (where ${isCountedAs([count], state)}) as ${count}`).join(', '))
}

/** The counters of a row, as a list of columns. */
export function countersOf(row: string): Sql {
  return raw(itemCounts.map((count) => `${row}.${count}`).join(', '))
}

/** How many items have ended, by the counters of a row. */
export function endedOf(row: string): Sql {
  return sumOf(row, itemCounts)
}

/** How many items count against the threshold, by the counters of a row. */
export function failedOf(row: string): Sql {
  return sumOf(row, failedCounts)
}

function sumOf(row: string, counts: readonly ItemCount[]): Sql {
  return raw(`(${counts.map((count) => `${row}.${count}`).join(' + ')})`)
}

/**
 * Whether that many failed items are more than the row `barrier` tolerates. A share is known only once the total is. 0.29 × 100 is
 * 28.999999999999996 in floating point, so a value that close to a whole number is taken for it.
 */
export function isOverThreshold(failed: Sql, total = raw('barrier.total')): Sql {
  return sql`${failed} > greatest(coalesce(barrier.tolerate_count, 0), floor(coalesce(barrier.tolerate_share, 0) * coalesce(${total}, 0) + 1e-9))`
}

/** Defines the functions that read the ledger. None depends on how many items have ended, except those that count them. */
export const itemDefinitions = [
  // items that have not ended, at most so many
  statement<never>()(
    'define.live_items',
    () => sql`
    create or replace function holdfast.live_items(barrier uuid, most int default null)
    returns table (job_id uuid, state text, attempt int, stage smallint, crashes smallint, session_id bigint, deadline_at timestamptz, lease_id bigint, slot int)
    language plpgsql stable set enable_seqscan = off as $$
    begin
      return query
      select ready.job_id, ${target('submit')}, ready.attempt, ready.stage, ready.crashes, null::bigint, null::timestamptz, null::bigint, null::int
      from holdfast.ready where ready.barrier_id = barrier
      union all
      select waiting.job_id, ${target('fanOut')}, waiting.attempt, waiting.stage, waiting.crashes, null, null, null, null
      from holdfast.waiting where waiting.barrier_id = barrier
      union all
      select running.job_id, ${target('claim')}, running.attempt, running.stage, running.crashes, running.session_id, running.deadline_at, running.lease_id, running.slot
      from holdfast.running
      where running.barrier_ids @> array[barrier]
        and (cardinality(running.barrier_ids) = 1 or (select job.barrier_id from holdfast.job where job.id = running.job_id) = barrier)
      limit most;
    end $$`,
  ),
  // whether no item is live
  statement<never>()(
    'define.barrier_drained',
    () => sql`
    create or replace function holdfast.barrier_drained(barrier uuid) returns boolean language plpgsql volatile cost 10000 set enable_seqscan = off as $$
    begin
      return not exists (select from holdfast.ready where ready.barrier_id = barrier)
        and not exists (select from holdfast.live_items(barrier));
    end $$`,
  ),
  // how many items count against the threshold
  statement<never>()(
    'define.failed_items',
    () => sql`
    create or replace function holdfast.failed_items(barrier uuid) returns int language plpgsql volatile set enable_seqscan = off as $$
    begin
      return (select count(*) from holdfast.outcome where outcome.barrier_id = barrier and ${raw(isCountedAs(failedCounts, 'outcome.state'))});
    end $$`,
  ),
  // how many items are live, and how the others count
  statement<never>()(
    'define.barrier_ledger',
    () => sql`
    create or replace function holdfast.barrier_ledger(barrier uuid, out live int, out succeeded int, out failed int, out cancelled int)
    language plpgsql volatile set enable_seqscan = off as $$
    begin
      select (select count(*) from holdfast.live_items(barrier)), ${countItems('outcome.state')}
      into live, succeeded, failed, cancelled
      from holdfast.outcome
      where outcome.barrier_id = barrier;
    end $$`,
  ),
]
