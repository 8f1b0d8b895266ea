import { ending } from './ending.sql.ts'
import { isLive, settingBits } from './lease.sql.ts'
import { raw, type Sql, sql, target } from './sql.ts'
import { notify, wakeIdle } from './wake.sql.ts'

/** A row that was cancelled. */
export interface CancelledRow {
  id: string
  /** Items that another statement held at that moment, because it claims or settles them; the same on every row. */
  skipped: string[] | null
}

/** What to cancel. */
export interface Cancelling {
  /**
   * Selects (id, root, stopped, lease_id, slot) of the live jobs to begin with; all items below them follow, however deep. `root`: the job for
   * whose sake, if somebody cancels a job. `stopped`: the barrier for whose sake, if one was stopped. Where a worker has it, its place.
   */
  seed: Sql
  /** Barriers of which items are cancelled although their own job is not. */
  barrierIds: string[]
  /** Why, as text or null. */
  reason: Sql
  /** Who, as text or null. */
  by?: Sql
}

/**
 * Cancels jobs and all items below them in one statement. Barriers are locked before anything else, and then nothing is waited for: a settle
 * may hold a lease and wait for its barrier, which is ours. Under those locks a barrier is looked at once more: it is spared if it is not
 * stopped and its job lives, or if it moved since we began and so may be redone. Whoever does not get the root, because somebody else has
 * moved it meanwhile, gets none of its items either; whether it has ended or is elsewhere by then is to be asked again.
 */
export function cancelling({ seed, barrierIds, reason, by = raw('null::text') }: Cancelling): Sql {
  return sql`
  with recursive family (id, root, stopped, lease_id, slot) as (
    ${seed}
    union all
    select item.job_id, family.root, family.stopped, item.lease_id, item.slot
    from family
    join holdfast.barrier on barrier.job_id = family.id
    cross join lateral holdfast.live_items(barrier.id) as item
  ),
  fenced as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.id = any(array(
      select barrier.id
      from family
      join holdfast.barrier on barrier.job_id = family.id
      union all
      select unnest(${barrierIds}::uuid[])
    ))
    order by barrier.id
    for no key update
  ),
  spared as materialized (
    select fenced.id
    from fenced
    join holdfast.barrier as seen on seen.id = fenced.id
    where fenced.stopped_at is null and (fenced.moved_at <> seen.moved_at or ${isLive('fenced.job_id')})
  ),
  meant as materialized (
    select family.id, family.root, family.lease_id, family.slot
    from family
    where (family.stopped is null or family.stopped not in (select id from spared)) and (select count(*) from fenced) >= 0
  ),
  leased as materialized (
    select lease.*
    from holdfast.lease
    where lease.id = any(array(select lease_id from meant))
    for no key update skip locked
  ),
  placed as materialized (
    select meant.id, meant.root, meant.slot, meant.lease_id, leased.session_id, leased.stage, leased.done, leased.attempts, leased.failures, leased.crashes,
      leased.flawed
    from (select * from meant where lease_id is not null) as meant
    full join leased on leased.id = meant.lease_id
  ),
  got as materialized (
    select meant.id, meant.root, ready.attempt, ready.stage, ready.failures, ready.crashes, ready.is_flawed, null::bigint as session_id,
      null::bigint as lease_id, null::int as slot, ready.ctid as in_ready, null::tid as in_waiting
    from meant
    join lateral (select ready.*, ready.ctid from holdfast.ready where ready.job_id = meant.id for update skip locked) as ready on true
    union all
    select meant.id, meant.root, waiting.attempt, waiting.stage, waiting.failures, waiting.crashes, waiting.is_flawed, null, null, null, null, waiting.ctid
    from meant
    join lateral (select waiting.*, waiting.ctid from holdfast.waiting where waiting.job_id = meant.id for update skip locked) as waiting on true
    union all
    select placed.id, placed.root, coalesce(placed.attempts[placed.slot + 1], 1), placed.stage, coalesce(placed.failures[placed.slot + 1], 0),
      coalesce(placed.crashes[placed.slot + 1], 0), coalesce(placed.flawed[placed.slot + 1], false), placed.session_id, placed.lease_id, placed.slot, null, null
    from placed
    where get_bit(placed.done, placed.slot) = 0
  ),
  taken as materialized (
    select *
    from got
    where root is null or root in (select own.id from got as own where own.id = own.root)
  ),
  held as materialized (
    select leased.id as held_id, leased.done | holdfast.bits_of(length(leased.done), mask.slots) as done_then
    from (select lease_id, array_agg(slot) as slots from taken where lease_id is not null group by lease_id) as mask
    join leased on leased.id = mask.lease_id
  ),
  ${settingBits},
  unqueued as (
    delete from holdfast.ready
    where ready.ctid = any(array(select in_ready from taken where in_ready is not null))
    returning ready.job_id
  ),
  released as (
    delete from holdfast.waiting
    where waiting.ctid = any(array(select in_waiting from taken where in_waiting is not null))
    returning waiting.job_id
  ),
  gone as materialized (
    select taken.*, job.kind, job.tenant as own_tenant, job.barrier_id
    from taken
    join holdfast.job on job.id = taken.id
    where (select count(*) from unqueued) + (select count(*) from released) >= 0
  ),
  ${ending({
    move: 'cancel',
    state: target('cancel'),
    error: sql`json_build_object('code', 'job_cancelled', 'message', coalesce(${reason}, 'The job was cancelled.'))`,
    data: sql`case when coalesce(${reason}, ${by}) is not null then json_strip_nulls(json_build_object('reason', ${reason}, 'by', ${by})) end`,
  })}
  select id, (
      select array_agg(meant.id)
      from meant
      where meant.id not in (select id from got) and meant.id is distinct from meant.root
        and (meant.root is null or meant.root in (select id from taken))
    ) as skipped,
    case when session_id is not null then ${notify('holdfast_abort', 'session_id::text')} end as told, ${wakeIdle} as woken
  from gone`
}
