import { itemCounts } from '../job/fan-out.ts'
import { lowestId } from '../job/id.ts'
import type { Page } from '../postgres/page.ts'
import { legal, raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { countersOf, endedOf } from '../transitions/barrier-counters.sql.ts'
import { joiningIf } from '../transitions/end.sql.ts'
import { isLive } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** A barrier that was repaired. */
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

/** How many barriers to handle, or which ones only. */
interface Batch {
  limit: number
  only?: string[] | undefined
}

const isMeant = (p: Batch, id = raw('barrier.id')) =>
  sql`(${p.only ?? null}::uuid[] is null or ${id} = any(${p.only ?? null}::uuid[]))`
const hasItems = raw('not holdfast.barrier_drained(barrier.id)')
const hasJob = isLive('barrier.job_id')

/** By how much the counters of a row differ from those of `ledger`, and whether one was below zero. */
function driftOf(row: string): Sql {
  const drift = raw(itemCounts.map((count) => `abs(${row}.${count} - ledger.${count})`).join(' + '))
  return sql`${drift} as drift, least(${countersOf(row)}) < 0 as was_negative`
}

/**
 * Fires the joins of barriers that have no live item left, by the ledger: drifted counters are corrected, and deleted items count as
 * failed. Each barrier is checked again under its lock; one that a settle or a redo has just moved is left alone.
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
    select drained.id, counted.*, drained.total - ${endedOf('counted')} as lost
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
      ${driftOf('drained')}, coalesce(drained.expires_at < now(), false) as was_expired
  )
  select healed.*, ${wakeIdle} as woken
  from healed`,
)

/** Barriers that have not joined, with their jobs. */
export const openBarriers = statement<{ id: string; job_id: string }>()(
  'barrier.open_ones',
  (p: Page<string>) => sql`
  select barrier.id, barrier.job_id
  from holdfast.barrier
  where barrier.joined_at is null and barrier.id > ${p.after}::uuid
  order by barrier.id
  limit ${p.limit}`,
)

/** Jobs that wait for their items. */
export const waitingJobs = statement<{ id: string; job_id: string }>()(
  'barrier.waiting_jobs',
  (p: Page<string>) => sql`
  select job_id as id, job_id
  from holdfast.waiting
  where job_id > ${p.after}::uuid
  order by job_id
  limit ${p.limit}`,
)

/**
 * Recounts barriers from the ledger: those that have been quiet, and those whose counters say that all items have ended although one is
 * live, because they make every settle read the ledger. Returns all of them, most without a drift.
 */
export const recountBarriers = statement<HealedRow>()(
  'barrier.recount',
  (p: Batch & { after?: string; quietMs: number }) => sql`
  with quiet as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.joined_at is null and barrier.armed_at is not null and barrier.id > ${p.after ?? lowestId}::uuid and ${isMeant(p)}
      and (barrier.moved_at < now() - ${p.quietMs}::float8 * interval '1 ms' or ${endedOf('barrier')} >= barrier.total)
    order by barrier.id
    limit ${p.limit}
    for no key update skip locked
  ),
  ledger as materialized (
    select quiet.id, counted.*
    from quiet
    cross join lateral holdfast.barrier_ledger(quiet.id) as counted
  ),
  recounted as (
    update holdfast.barrier
    set succeeded = ledger.succeeded, failed = ledger.failed, cancelled = ledger.cancelled, moved_at = now()
    from ledger
    join quiet on quiet.id = ledger.id
    where barrier.id = ledger.id
      and (${countersOf('quiet')}) is distinct from (${countersOf('ledger')})
  )
  select quiet.id, quiet.job_id, quiet.total, 0 as lost, ${driftOf('quiet')}, false as was_expired
  from quiet
  join ledger on ledger.id = quiet.id
  order by quiet.id`,
)

/** Barriers with live items that were stopped, or whose job is gone. */
export const findUnstopped = statement<{ id: string; job_id: string; is_abandoned: boolean; is_expired: boolean }>()(
  'barrier.unstopped',
  (p: Page<string>) => sql`
  select barrier.id, barrier.job_id, not ${hasJob} as is_abandoned, coalesce(barrier.expires_at <= barrier.stopped_at, false) as is_expired
  from holdfast.barrier
  where barrier.joined_at is null and barrier.id > ${p.after}::uuid and (barrier.stopped_at is not null or not ${hasJob}) and ${hasItems}
  order by barrier.id
  limit ${p.limit}`,
)

/**
 * Barriers that are gone although they have live items. Skips from one barrier to the next along the indexes, so its cost is the number of
 * barriers with live items, and of leases.
 */
export const findOrphanItems = statement<{ id: string }>()(
  'barrier.orphan_items',
  (p: Page<string>) => sql`
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
    select item.id
    from (
      select id from named where id is not null
      union
      select barrier_id from holdfast.waiting where barrier_id is not null
      union
      select unnest(barrier_ids) from holdfast.lease where barrier_ids is not null
    ) as item
    where item.id > ${p.after}::uuid and not exists (select from holdfast.barrier where barrier.id = item.id)
    order by item.id
  ) as item
  where exists (select from holdfast.live_items(item.id))
  order by item.id
  limit ${p.limit}`,
)

/**
 * Puts jobs back in their queues that wait for nothing, because there is no armed barrier of their stage to join them. Its join was recorded
 * and never reached the job, or its row is gone; the worker that claims the job finds out which.
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

/** Closes barriers whose job is gone and whose items have ended: there is no job to join. */
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
 * Stops barriers that have expired with live items. If workers of these items have died, the items were lost rather than slow: the expiry
 * is postponed, so that the revived items get another chance. A worker without a heartbeat since the expiry may be dead: the recovery ladder
 * decides that within its lease, and until then nothing is stopped. A barrier that was redone was armed after it was sealed, and its time
 * counts from then.
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
