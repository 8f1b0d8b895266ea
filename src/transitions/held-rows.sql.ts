import { plainList } from '../postgres/array-text.ts'
import { sql, statement } from '../postgres/sql.ts'
import { heldPlace } from './leases.sql.ts'

/** What a write about an attempt locks: its lease, and the barrier that counts or joins it, if it does that to one. */
export interface Need {
  id: string
  leaseId: number
  /** `counts`: the write ends the job, so the barrier that the job is an item of counts it. `seals`: it seals the barrier of its stage. */
  barrier: 'counts' | 'seals' | 'none'
}

/**
 * Which of these writes need a row that another transaction has locked, and one such row of each. All other rows are locked for this
 * transaction, so its next statements need not wait for them. A barrier counts as locked if the row of its waiting job is, because the
 * write that counts the last item moves that job as well. The job of an item is looked up only if its lease has items.
 */
export const heldRows = statement<{ place: number; row: string }>()(
  'lease.held',
  (p: { needs: readonly Need[] }) => sql`
  with mine as materialized (
    select mine.place, mine.lease_id, counting.barrier_id as counted, sealing.id as sealed
    from unnest(
      ${plainList(p.needs.map(({ id }) => id))}::uuid[], ${plainList(p.needs.map(({ leaseId }) => leaseId))}::bigint[],
      ${plainList(p.needs.map(({ barrier }) => barrier))}::text[]
    ) with ordinality as mine (id, lease_id, need, place)
    left join holdfast.lease on lease.id = mine.lease_id
    left join lateral (
      select job.barrier_id
      from holdfast.job
      where job.id = mine.id and mine.need = 'counts' and lease.barrier_ids is not null
      limit 1
    ) as counting on true
    left join lateral (
      select barrier.id
      from holdfast.barrier
      where barrier.job_id = mine.id and barrier.stage = lease.stage and mine.need = 'seals'
      limit 1
    ) as sealing on true
  ),
  free_lease as materialized (
    select lease.id
    from holdfast.lease
    where lease.id = any(array(select lease_id from mine))
    for no key update skip locked
  ),
  named as materialized (
    select barrier.id, barrier.job_id
    from holdfast.barrier
    where barrier.id = any(array(select coalesce(counted, sealed) from mine))
  ),
  free_barrier as materialized (
    select barrier.id
    from holdfast.barrier
    where barrier.id = any(array(select id from named))
    for no key update skip locked
  ),
  free_parent as materialized (
    select waiting.job_id
    from holdfast.waiting
    where waiting.job_id = any(array(select job_id from named))
    for update skip locked
  ),
  held_lease as materialized (
    select lease.id
    from holdfast.lease
    where lease.id = any(array(select lease_id from mine)) and not exists (select from free_lease where free_lease.id = lease.id)
  ),
  held_barrier as materialized (
    select named.id, case when exists (select from free_barrier where free_barrier.id = named.id) then 'waiting ' || named.job_id else 'barrier ' || named.id end as row
    from named
    where not exists (select from free_barrier where free_barrier.id = named.id)
      or (exists (select from holdfast.waiting where waiting.job_id = named.job_id) and not exists (select from free_parent where free_parent.job_id = named.job_id))
  )
  select mine.place::int, coalesce(held_barrier.row, 'lease ' || held_lease.id) as row
  from mine
  left join held_lease on held_lease.id = mine.lease_id
  left join held_barrier on held_barrier.id = coalesce(mine.counted, mine.sealed)
  where held_lease.id is not null or held_barrier.id is not null`,
)

/** Locks one row, after waiting for it as long as the transaction may. By the name that `heldRows` has for its table. */
export const awaitRow = {
  lease: statement<never>()(
    'lease.await',
    (p: { id: string }) => sql`select from holdfast.lease where id = ${p.id}::bigint for no key update`,
  ),
  barrier: statement<never>()(
    'barrier.await',
    (p: { id: string }) => sql`select from holdfast.barrier where id = ${p.id}::uuid for no key update`,
  ),
  waiting: statement<never>()(
    'waiting.await',
    (p: { id: string }) => sql`select from holdfast.waiting where job_id = ${p.id}::uuid for update`,
  ),
}

/** Removes outcomes of jobs that a worker still holds, as a partial restore leaves them: such a job is about to end, and its outcome replaces them. */
export const removeTwins = statement<{ id: string }>()(
  'outcome.remove_twins',
  (p: { ids: string[] }) => sql`
  delete from holdfast.outcome as twin
  where twin.job_id = any(${p.ids}::uuid[]) and exists (select from ${heldPlace('twin.job_id')} as held)
  returning twin.job_id as id`,
)
