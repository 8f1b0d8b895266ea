import { joiningIf } from '../store/ending.sql.ts'
import { isLive } from '../store/lease.sql.ts'
import { legal, raw, sql, statement } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'

/** A barrier that was mended. */
export interface HealedRow {
  id: string
  job_id: string
  total: number | null
  /** How many items the ledger lacks. */
  lost: number
  /** By how much the counters were off. */
  drift: number
  was_negative: boolean
  was_expired: boolean
}

/** How many barriers to see to, or only which. */
interface Batch {
  limit: number
  only?: string[] | undefined
}

const isMeant = (p: Batch, id = raw('barrier.id')) =>
  sql`(${p.only ?? null}::uuid[] is null or ${id} = any(${p.only ?? null}::uuid[]))`
const hasItems = raw('exists (select from holdfast.live_items(barrier.id))')
const hasJob = isLive('barrier.job_id')

/**
 * Fires the joins of barriers that have no live item left, by the ledger: counts that drifted are put right, and items that somebody
 * deleted count as failed. A barrier that a settle or a redo has just moved is looked at again under its lock, and left alone.
 */
export const joinDrained = statement<HealedRow>()(
  'barrier.join_drained',
  (p: Batch) => sql`
  with drained as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.joined_at is null and barrier.armed_at is not null and not ${hasItems} and ${isMeant(p)}
    order by barrier.id
    limit ${p.limit}
    for no key update skip locked
  ),
  ledger as materialized (
    select drained.id, counted.*, drained.total - counted.succeeded - counted.failed - counted.cancelled as lost
    from drained
    cross join lateral holdfast.barrier_ledger(drained.id) as counted
    where counted.live = 0
  ),
  healed as (
    update holdfast.barrier
    set succeeded = ledger.succeeded, failed = ledger.failed + greatest(0, ledger.lost), cancelled = ledger.cancelled, joined_at = now(), moved_at = now()
    from ledger
    join drained on drained.id = ledger.id
    where barrier.id = ledger.id
    returning barrier.id, barrier.job_id, barrier.total, greatest(0, ledger.lost) as lost, ${joiningIf('true')},
      abs(drained.succeeded - ledger.succeeded) + abs(drained.failed - ledger.failed) + abs(drained.cancelled - ledger.cancelled) as drift,
      least(drained.succeeded, drained.failed, drained.cancelled) < 0 as was_negative, coalesce(drained.expires_at < now(), false) as was_expired
  )
  select healed.*, ${wakeIdle} as woken
  from healed`,
)

/** Barriers that are still to be joined, with their jobs. */
export const openBarriers = statement<{ id: string; job_id: string }>()(
  'barrier.open_ones',
  (p: { after: string; limit: number }) => sql`
  select barrier.id, barrier.job_id
  from holdfast.barrier
  where barrier.joined_at is null and barrier.id > ${p.after}::uuid
  order by barrier.id
  limit ${p.limit}`,
)

/** Jobs that wait for their items. */
export const waitingJobs = statement<{ id: string; job_id: string }>()(
  'barrier.waiting_jobs',
  (p: { after: string; limit: number }) => sql`
  select job_id as id, job_id
  from holdfast.waiting
  where job_id > ${p.after}::uuid
  order by job_id
  limit ${p.limit}`,
)

/**
 * Puts the counters of barriers right by the ledger: of quiet ones, and of those that say that all has ended although something lives, which
 * keep every settle looking at the ledger.
 */
export const recountBarriers = statement<HealedRow>()(
  'barrier.recount',
  (p: Batch & { quietMs: number }) => sql`
  with quiet as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.joined_at is null and barrier.armed_at is not null and ${isMeant(p)}
      and (barrier.moved_at < now() - ${p.quietMs}::float8 * interval '1 ms' or barrier.succeeded + barrier.failed + barrier.cancelled >= barrier.total)
    order by barrier.moved_at
    limit ${p.limit}
    for no key update skip locked
  ),
  ledger as materialized (
    select quiet.id, counted.*
    from quiet
    cross join lateral holdfast.barrier_ledger(quiet.id) as counted
  )
  update holdfast.barrier
  set succeeded = ledger.succeeded, failed = ledger.failed, cancelled = ledger.cancelled, moved_at = now()
  from ledger
  join quiet on quiet.id = ledger.id
  where barrier.id = ledger.id
    and (quiet.succeeded, quiet.failed, quiet.cancelled) is distinct from (ledger.succeeded, ledger.failed, ledger.cancelled)
  returning barrier.id, barrier.job_id, barrier.total, 0 as lost,
    abs(quiet.succeeded - ledger.succeeded) + abs(quiet.failed - ledger.failed) + abs(quiet.cancelled - ledger.cancelled) as drift,
    least(quiet.succeeded, quiet.failed, quiet.cancelled) < 0 as was_negative, false as was_expired`,
)

/** Barriers that were stopped, or whose job is gone, although items of theirs still live. */
export const findUnstopped = statement<{ id: string; job_id: string; is_abandoned: boolean; is_expired: boolean }>()(
  'barrier.unstopped',
  (p: { limit: number }) => sql`
  select barrier.id, barrier.job_id, not ${hasJob} as is_abandoned, coalesce(barrier.expires_at <= barrier.stopped_at, false) as is_expired
  from holdfast.barrier
  where barrier.joined_at is null and (barrier.stopped_at is not null or not ${hasJob}) and ${hasItems}
  order by barrier.id
  limit ${p.limit}`,
)

/**
 * Barriers that are gone although items of theirs live on. Hops from one barrier to the next along the indexes, so its cost is the number
 * of barriers that have live items, and of leases.
 */
export const findStrays = statement<{ id: string }>()(
  'barrier.strays',
  (p: { limit: number }) => sql`
  with recursive named (id) as (
    (select item.barrier_id from holdfast.ready as item where item.barrier_id is not null order by item.barrier_id limit 1)
    union all
    select (
      select item.barrier_id
      from holdfast.ready as item
      where item.barrier_id is not null and item.barrier_id > named.id
      order by item.barrier_id
      limit 1
    )
    from named
    where named.id is not null
  )
  select item.id
  from (
    select id from named where id is not null
    union
    select barrier_id from holdfast.waiting where barrier_id is not null
    union
    select unnest(barrier_ids) from holdfast.lease where barrier_ids is not null
  ) as item
  where not exists (select from holdfast.barrier where barrier.id = item.id) and exists (select from holdfast.live_items(item.id))
  limit ${p.limit}`,
)

/**
 * Puts jobs back in their queues that wait for nothing: no armed barrier of their stage is there to join them. Its join was recorded
 * and never reached the job, or its row is gone; whoever claims the job finds out which.
 */
export const requeueWaiting = statement<{ id: string }>()(
  'barrier.requeue',
  (p: Batch) => sql`
  with stranded as materialized (
    select job.job_id
    from holdfast.waiting as job
    where not exists (
      select
      from holdfast.barrier
      where barrier.job_id = job.job_id and barrier.stage = job.stage and barrier.armed_at is not null and barrier.joined_at is null
    ) and ${isMeant(p, raw('job.job_id'))}
    order by job.job_id
    limit ${p.limit}
    for update skip locked
  ),
  queued as materialized (
    select stranded.job_id as id, holdfast.join_parent(stranded.job_id) as is_queued
    from stranded
  )
  select queued.id, ${wakeIdle} as woken
  from queued
  where queued.is_queued`,
)

/** Closes barriers whose job is gone and whose items have ended: there is nobody to join. */
export const closeAbandoned = statement<{ id: string }>()(
  'barrier.close',
  (p: { limit: number }) => sql`
  update holdfast.barrier
  set joined_at = now(), moved_at = now()
  where id = any(array(
    select barrier.id
    from holdfast.barrier
    where barrier.joined_at is null and not ${hasJob} and not ${hasItems}
    order by barrier.id
    limit ${p.limit}
    for no key update skip locked
  ))
  returning id`,
)

/**
 * Stops barriers that have expired with work left. If workers of that work have died since, it was not slow but lost: the expiry is put off
 * once more, and the items, which are revived, get their chance. A worker that has not been heard of since the expiry may be dead: the
 * recovery ladder decides that within its lease, and until then nothing is stopped. One that was redone is armed later than it was sealed,
 * and has its time from then on.
 */
export const expireBarriers = statement<{ id: string; job_id: string; is_stopped: boolean }>()(
  'barrier.expire',
  (p: Batch) => sql`
  with late as materialized (
    select barrier.id, barrier.expires_at,
      barrier.expires_at - case when barrier.armed_at > barrier.sealed_at then barrier.armed_at else barrier.opened_at end as patience
    from holdfast.barrier
    where barrier.joined_at is null and barrier.armed_at is not null and barrier.stopped_at is null and barrier.expires_at < now() and ${hasItems}
      and ${isMeant(p)}
    order by barrier.id
    limit ${p.limit}
    for no key update skip locked
  ),
  judged as materialized (
    select late.*, worst.crashes, worst.is_unclear
    from late
    cross join lateral (
      with recursive work (id, crashes, state, session_id) as (
        select item.job_id, item.crashes, item.state, item.session_id
        from holdfast.live_items(late.id) as item
        union all
        select item.job_id, item.crashes, item.state, item.session_id
        from work
        join holdfast.barrier as inner_barrier on inner_barrier.job_id = work.id
        cross join lateral holdfast.live_items(inner_barrier.id) as item
      )
      select max(work.crashes + case when session.id is null and ${legal('revive', 'work')} then 1 else 0 end)::smallint as crashes,
        coalesce(bool_or(session.heartbeat_at <= late.expires_at), false) as is_unclear
      from work
      left join holdfast.session on session.id = work.session_id and session.ended_at is null
    ) as worst
  )
  update holdfast.barrier
  set stopped_at = case when judged.crashes > barrier.extended then null else now() end,
    expires_at = case when judged.crashes > barrier.extended then now() + judged.patience else barrier.expires_at end,
    extended = greatest(barrier.extended, judged.crashes), moved_at = now()
  from judged
  where barrier.id = judged.id and (judged.crashes > barrier.extended or not judged.is_unclear)
  returning barrier.id, barrier.job_id, barrier.stopped_at is not null as is_stopped`,
)
