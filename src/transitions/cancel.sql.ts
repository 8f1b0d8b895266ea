import { raw, type Sql, sql, target } from '../postgres/sql.ts'
import { ending } from './end.sql.ts'
import { isLive, settingBits } from './leases.sql.ts'
import { notify, wakeIdle } from './wake.sql.ts'

/** A row that was cancelled. */
export interface CancelledRow {
  id: string
  /**
   * Items that another statement held at that moment, because it was claiming or settling them. They are on the row of the job that was
   * cancelled, or on the first row if barriers were stopped.
   */
  skipped: string[] | null
  /** On the same row: there may be more items than one statement cancels. */
  is_cut: boolean
}

/** How many jobs one statement cancels, so that it takes a fraction of a second. */
export const mostAtOnce = 5_000

/** What to cancel. */
export interface Cancelling {
  /**
   * Selects (id, root, stopped, lease_id, slot) of the live jobs to start with; all items below them follow, however deep. `root`: the job
   * that a caller cancels, if that is the cause. `stopped`: the barrier that was stopped, if that is. lease_id and slot: where a worker
   * holds it, if one does.
   */
  seed: Sql
  /** Barriers whose items are cancelled although their own job is not. */
  barrierIds: string[]
  /** How many jobs to cancel at most, as int. Default: `mostAtOnce`. */
  most?: Sql
  /** Why, as text or null. */
  reason: Sql
  /** Who, as text or null. */
  by?: Sql
  /** The bulk operation that it is part of, as text or null. */
  bulk?: Sql
}

/**
 * Cancels jobs and the items below them in one statement, up to `mostAtOnce`. The caller cancels the rest with `stopBarriers`; otherwise the
 * reaper does, because their job has ended or their barrier was stopped.
 *
 * Barriers are locked first: all that count what is cancelled here, in the order of their ids. After that, nothing is waited for, because a
 * settle may hold a lease while it waits for one of these barriers. If the root can't be taken, because it has moved meanwhile, none of its
 * items are either; the caller asks again whether it has ended.
 */
export function cancelling({
  seed,
  barrierIds,
  most = raw(String(mostAtOnce)),
  reason,
  by = raw('null::text'),
  bulk = raw('null::text'),
}: Cancelling): Sql {
  return sql`
  with recursive ${family(seed, most)},
  ${lockBarriers(barrierIds)},
  ${meant(most)},
  ${findRows},
  ${takeRows},
  ${ending({
    move: 'cancel',
    state: target('cancel'),
    error: sql`json_build_object('code', 'job_cancelled', 'message', coalesce(${reason}, 'The job was cancelled.'))`,
    data: sql`case when coalesce(${reason}, ${by}, ${bulk}) is not null then json_strip_nulls(json_build_object('reason', ${reason}, 'by', ${by}, 'bulk', ${bulk})) end`,
  })},
  ${report(most)}`
}

/** `family`: the jobs to start with, and all live items below them. */
const family = (seed: Sql, most: Sql) => sql`family (id, root, stopped, lease_id, slot) as (
    ${seed}
    union all
    select item.job_id, family.root, family.stopped, item.lease_id, item.slot
    from family
    join holdfast.barrier on barrier.job_id = family.id
    cross join lateral holdfast.live_items(barrier.id, ${most}) as item
  )`

/**
 * `fenced`: the locked barriers. `spared`: those whose items are not cancelled after all, by a second look under the lock: the barrier is
 * not stopped, and its job is live or it has moved since this statement began, so it may have been redone.
 */
const lockBarriers = (barrierIds: string[]) => sql`fenced as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.id = any(array(
      select barrier.id
      from family
      join holdfast.barrier on barrier.job_id = family.id
      union all
      select (select job.barrier_id from holdfast.job where job.id = family.root)
      from family
      where family.id = family.root
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
  )`

/** `meant`: the jobs to cancel. It counts `fenced` so that the locks come first. */
const meant = (most: Sql) => sql`meant as materialized (
    select family.id, family.root, family.lease_id, family.slot
    from family
    where (family.stopped is null or family.stopped not in (select id from spared)) and (select count(*) from fenced) >= 0
    limit ${most}
  )`

/** `got`: those that are still in `ready`, in `waiting` or in their lease, whose row is locked here and was not locked by another. */
const findRows = raw(`leased as materialized (
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
      null::bigint as lease_id, null::int as slot, true as is_queued, false as is_waiting
    from meant
    join lateral (select * from holdfast.ready where ready.job_id = meant.id for update skip locked) as ready on true
    union all
    select meant.id, meant.root, waiting.attempt, waiting.stage, waiting.failures, waiting.crashes, waiting.is_flawed, null, null, null, false, true
    from meant
    join lateral (select * from holdfast.waiting where waiting.job_id = meant.id for update skip locked) as waiting on true
    union all
    select placed.id, placed.root, coalesce(placed.attempts[placed.slot + 1], 1), placed.stage, coalesce(placed.failures[placed.slot + 1], 0),
      coalesce(placed.crashes[placed.slot + 1], 0), coalesce(placed.flawed[placed.slot + 1], false), placed.session_id, placed.lease_id, placed.slot, false, false
    from placed
    where get_bit(placed.done, placed.slot) = 0
  )`)

/** `gone`: those of them whose root was got as well, taken out of where they were. */
const takeRows = sql`taken as materialized (
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
    where ready.job_id = any(array(select id from taken where is_queued))
    returning ready.job_id
  ),
  released as (
    delete from holdfast.waiting
    where waiting.job_id = any(array(select id from taken where is_waiting))
    returning waiting.job_id
  ),
  gone as materialized (
    select taken.*, job.kind, job.tenant as own_tenant, job.barrier_id
    from taken
    cross join lateral (select * from holdfast.job where job.id = taken.id limit 1) as job
    where (select count(*) from unqueued) + (select count(*) from released) >= 0
  )`

/** Whether a row reports on the others as well. */
const reports = raw('(id = root or (root is null and row_number() over () = 1))')

/** What was cancelled and what was skipped. Tells the sessions that ran one of the jobs. */
const report = (most: Sql) => sql`missed as materialized (
    select meant.root, array_agg(meant.id) as ids
    from meant
    where meant.id not in (select id from got) and meant.id is distinct from meant.root
      and (meant.root is null or meant.root in (select id from taken))
    group by meant.root
  )
  select id, case when ${reports} then (select missed.ids from missed where missed.root is not distinct from gone.root) end as skipped,
    ${reports} and (select count(*) from meant) >= ${most} as is_cut,
    case when session_id is not null then ${notify('holdfast_abort', 'session_id::text')} end as told, ${wakeIdle} as woken
  from gone`
