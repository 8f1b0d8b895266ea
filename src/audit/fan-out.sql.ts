import { eventOf, type Sql, sql } from '../postgres/sql.ts'
import { countersOf, countItems, endedOf } from '../transitions/barrier-counters.sql.ts'
import { check, isInLog, lacks } from './check.sql.ts'

/** The counters of a row, in words. */
function settledText(row: string): Sql {
  return sql`format('%s succeeded, %s failed, %s cancelled', ${countersOf(row)})`
}

/** The checks of fan-outs. */
export const fanOutChecks = {
  'waiting-has-barrier': check(
    'waiting_has_barrier',
    () => sql`
    select job.job_id::text, 'is waiting, but no armed barrier of its stage will join it'
    from holdfast.waiting as job
    where ${lacks(sql`holdfast.barrier
      where barrier.job_id = job.job_id and barrier.stage = job.stage and barrier.armed_at is not null and barrier.joined_at is null`)}`,
  ),
  'counters-match-ledger': check(
    'counters_match_ledger',
    (p) => sql`
    select barrier.id::text, format('counts %s, but its items are %s', barrier.settled, ledger.settled)
    from (
      select id, ${settledText('barrier')} as settled
      from holdfast.barrier
      where joined_at is null
      order by id desc
      limit ${p.latest}::bigint
    ) as barrier
    cross join lateral (
      select ${settledText('counted')} as settled
      from (select ${countItems('item.state')} from holdfast.outcome as item where item.barrier_id = barrier.id) as counted
    ) as ledger
    where ledger.settled <> barrier.settled`,
  ),
  'joined-has-ended': check(
    'joined_has_ended',
    (p) => sql`
    select barrier.id::text, format('has joined with %s of %s items counted, %s', barrier.settled, barrier.total,
      case when barrier.settled > barrier.total then 'more than there are' else 'but one of them is live' end)
    from (
      select id, total, ${endedOf('barrier')} as settled
      from holdfast.barrier
      where joined_at is not null and total is not null
      order by id desc
      limit ${p.latest}::bigint
    ) as barrier
    where barrier.settled > barrier.total
      or (barrier.settled = barrier.total and exists (select from holdfast.live_items(barrier.id)))`,
  ),
  'one-join-per-fan-out': check(
    'one_join_per_fan_out',
    (p) => sql`
    select barrier.job_id::text, format('fanned out %s times and was joined %s times', told.fans, told.joins)
    from (select distinct job_id from (select job_id from holdfast.barrier order by id desc limit ${p.latest}::bigint) as latest) as barrier
    cross join lateral (
      select count(*) filter (where event.type = ${eventOf('fanOut')}) as fans, count(*) filter (where event.type = ${eventOf('join')}) as joins
      from holdfast.event
      where event.job_id = barrier.job_id
    ) as told
    where told.joins > told.fans and exists (select from holdfast.job where job.id = barrier.job_id and job.${isInLog})`,
  ),
  'item-has-barrier': check(
    'item_has_barrier',
    () => sql`
    select job.job_id::text, format('is an item of barrier %s, which does not exist', named.barrier_id)
    from (
      select barrier_id from holdfast.ready where barrier_id is not null
      union
      select barrier_id from holdfast.waiting where barrier_id is not null
      union
      select unnest(barrier_ids) from holdfast.lease where barrier_ids is not null
    ) as named
    cross join lateral holdfast.live_items(named.barrier_id) as job
    where ${lacks(sql`holdfast.barrier where barrier.id = named.barrier_id`)}`,
  ),
} as const
