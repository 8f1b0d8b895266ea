/**
 * Leases: where jobs are while workers have them, and how they leave.
 *
 * The invariant: a job is in exactly one place, `ready`, an open lease (its bit is 0), `waiting` or `outcome`, and every statement that moves
 * it takes it out of one place and puts it into another. Who wins is decided by the row that a job is taken out of:
 * - `ready`: a claim, a cancel and an unpark delete the row; one of them gets it.
 * - a lease: whoever settles, cancels, revives or releases locks the lease's row, reads its bits as they are once it has the lock, and
 *   moves only jobs whose bit is 0. It sets their bits, or removes the lease with the last of them, before the lock is let go.
 * - `waiting`: a join and a cancel delete the row, both while they hold the barrier's row.
 * - `outcome`: a redo deletes the row.
 *
 * What can meet, and what the second one finds:
 * - finish (advance, retry, fail, fan-out, release) against revive or cancel: the bit is set, or the lease is gone. Nothing is written, and
 *   the write is recorded as refused.
 * - cancel against claim: the row in `ready` is gone, and the lease that the claim made is not in the snapshot of the cancel. It gets no row,
 *   and asks again: src/submit/cancel.ts.
 * - cancel against a settle that queues or ends the job: the bit is set. It asks again, and finds the job where it is then.
 * - claim against the end of its session: the claim may commit after the reaper has looked. Its lease then has an ended session, and the
 *   next sweep finds it so.
 * - revive against revive, by two leaders: the second waits for no lease, it skips what is locked; and what it gets has its bits set.
 * - join against fan-out: whoever counts the last item holds the barrier's row, and so comes before or after the fan-out that arms it. It
 *   looks for the parent by a function with a snapshot of its own, because the row in `waiting` may be younger than its own snapshot.
 * - redo against anything: nothing else touches the row of a job that has ended, but the duty that removes old ones, which deletes it too.
 *
 * Settles lock leases in the order of their ids, and barriers after them. A cancel locks barriers first, and so waits for no lease.
 */
import type { HeldFence } from '../job/id.ts'
import { plainList } from './lists.ts'
import { raw, type Sql, sql } from './sql.ts'

/** What a statement needs to find attempts: one row for each, and one for each lease with the bits to set. */
interface Places {
  ids: string
  attempts: string
  leaseIds: string
  slots: string
  leases: string
  masks: string
}

function placesOf(fences: readonly HeldFence[]): Places {
  const masks = new Map<number, string[]>()
  for (const { leaseId, leaseSize, slot } of fences) {
    let mask = masks.get(leaseId)
    if (!mask) {
      mask = new Array<string>(leaseSize).fill('0')
      masks.set(leaseId, mask)
    }
    mask[slot] = '1'
  }
  const leases = [...masks.keys()].sort((a, b) => a - b)
  return {
    ids: plainList(fences.map(({ id }) => id)),
    attempts: plainList(fences.map(({ attempt }) => attempt)),
    leaseIds: plainList(fences.map(({ leaseId }) => leaseId)),
    slots: plainList(fences.map(({ slot }) => slot)),
    leases: plainList(leases),
    masks: plainList(leases.map((id) => (masks.get(id) as string[]).join(''))),
  }
}

/** More columns of `mine`: their names, and a list for each. */
export interface MoreColumns {
  names: string
  lists: Sql
}

/**
 * Takes attempts out of their leases, as CTEs. `gone` holds those that these fences still own, each with what its lease knows of it; the
 * rest is missing there. The pairs are made by a full join, which no planner turns into a comparison of each with each.
 */
export function takingOut(fences: readonly HeldFence[], more?: MoreColumns): Sql {
  const places = placesOf(fences)
  const columns = more ? `, ${more.names.split(', ').map((name) => `mine.${name}`).join(', ')}` : ''
  return sql`
  mine as materialized (
    select *
    from unnest(${places.ids}::uuid[], ${places.attempts}::int[], ${places.leaseIds}::bigint[], ${places.slots}::int[]${more ? sql`, ${more.lists}` : raw('')})
      with ordinality as mine (id, attempt, lease_id, slot${raw(more ? `, ${more.names}` : '')}, place)
  ),
  held as materialized (
    select lease.id as held_id, lease.session_id, lease.kind, lease.stage, lease.due_at, lease.tenant, lease.barrier_ids, lease.done,
      lease.done | mask.bits as done_then, lease.failures as failures_of, lease.crashes as crashes_of, lease.flawed as flawed_of
    from unnest(${places.leases}::bigint[], ${places.masks}::varbit[]) as mask (lease_id, bits)
    cross join lateral (
      select *
      from holdfast.lease
      where lease.id = mask.lease_id
      for no key update
    ) as lease
  ),
  paired as materialized (
    select mine.place, mine.id, mine.attempt${raw(columns)}, held.session_id, held.kind, held.stage, held.due_at, held.tenant, held.barrier_ids is not null as is_item,
      coalesce(held.failures_of[mine.slot + 1], 0::smallint) as failures, coalesce(held.crashes_of[mine.slot + 1], 0::smallint) as crashes,
      coalesce(held.flawed_of[mine.slot + 1], false) as is_flawed, get_bit(held.done, mine.slot) = 0 as is_mine
    from mine
    full join held on held.held_id = mine.lease_id
  ),
  gone as materialized (
    select paired.*, coalesce(paired.tenant, own.tenant) as own_tenant, own.barrier_id
    from paired
    left join lateral (
      select job.tenant, job.barrier_id
      from holdfast.job
      where job.id = case when paired.tenant is null or paired.is_item then paired.id end
      limit 1
    ) as own on true
    where paired.is_mine
  ),
  ${settingBits}`
}

/** Which of the attempts that these fences own are to be taken out: a condition on the rows of `lease`, and one on those of `gone`. */
export interface Only {
  lease: Sql
  job: Sql
}

/** The same for those of them of which that is true; `gone` has the crash budget, too. The bits are put together by the database. */
export function takingOutOnly(fences: readonly HeldFence[], more: MoreColumns, only: Only): Sql {
  const places = placesOf(fences)
  const columns = more.names.split(', ').map((name) => `mine.${name}`)
  return sql`
  mine as materialized (
    select *
    from unnest(${places.ids}::uuid[], ${places.attempts}::int[], ${places.leaseIds}::bigint[], ${places.slots}::int[], ${more.lists})
      as mine (id, attempt, lease_id, slot, ${raw(more.names)})
  ),
  locked as materialized (
    select lease.*
    from unnest(${places.leases}::bigint[]) as named (id)
    cross join lateral (
      select *
      from holdfast.lease
      where lease.id = named.id and ${only.lease}
      for no key update
    ) as lease
  ),
  paired as materialized (
    select mine.id, mine.attempt, mine.slot, ${raw(columns.join(', '))}, locked.id as held_id, locked.session_id, locked.kind, locked.stage,
      coalesce(locked.failures[mine.slot + 1], 0::smallint) as failures, coalesce(locked.crashes[mine.slot + 1], 0::smallint) as crashes,
      coalesce(locked.flawed[mine.slot + 1], false) as is_flawed, get_bit(locked.done, mine.slot) = 0 as is_mine
    from mine
    full join locked on locked.id = mine.lease_id
  ),
  gone as materialized (
    select *
    from (
      select paired.*, own.tenant as own_tenant, own.barrier_id, own.crash_budget, own.is_part
      from paired
      cross join lateral (
        select job.tenant, job.barrier_id, job.crash_budget, job.is_part
        from holdfast.job
        where job.id = paired.id
        limit 1
      ) as own
      where paired.is_mine
    ) as job
    where ${only.job}
  ),
  held as materialized (
    select locked.id as held_id, locked.done | holdfast.bits_of(length(locked.done), mask.slots) as done_then
    from (select held_id, array_agg(slot) as slots from gone group by held_id) as mask
    join locked on locked.id = mask.held_id
  ),
  ${settingBits}`
}

/** Sets the bits of `held` as it says they shall be, and removes leases that hold nothing any more. */
export const settingBits = raw(`marked as (
    update holdfast.lease
    set done = held.done_then
    from held
    where lease.id = held.held_id and bit_count(held.done_then) < length(held.done_then)
    returning lease.id
  ),
  emptied as (
    delete from holdfast.lease
    using held
    where lease.id = held.held_id and bit_count(held.done_then) = length(held.done_then)
    returning lease.id
  )`)

/** True once the bits are set: whoever looks at the ledger after this does not find what has just left. */
export const areBitsSet = raw('(select count(*) from marked) + (select count(*) from emptied) >= 0')

/** Whether a job is there and has not ended. */
export function isLive(id: string): Sql {
  return raw(
    `(exists (select from holdfast.job as live where live.id = ${id}) and not exists (select from holdfast.outcome as ended where ended.job_id = ${id}))`,
  )
}

/** Where a job is held, as a lateral subquery: lease_id, slot, size and more of `running`; nothing if no worker has it. */
export function heldPlace(id: string): Sql {
  return raw(`(
      select running.*
      from holdfast.running
      where ${id} between running.low_id and running.high_id and running.job_id = ${id}
      limit 1
    )`)
}

/** How jobs are queued again. Each is an expression over the rows of the source, which has their id. */
export interface Requeue {
  source: string
  runAt: Sql
  stage?: string
  attempt?: string
  failures?: string
  crashes?: string
  isFlawed?: string
}

/** Queues jobs again, as a statement that inserts. */
export function requeueing({
  source,
  runAt,
  stage = 'stage',
  attempt = 'attempt',
  failures = 'failures',
  crashes = 'crashes',
  isFlawed = 'is_flawed',
}: Requeue): Sql {
  const of = (column: string) => (/^[a-z_]+$/.test(column) ? `back.${column}` : column)
  return sql`
    insert into holdfast.ready (job_id, run_at, stage, attempt, failures, crashes, is_flawed, kind, queue, tenant, priority, crash_budget, barrier_id, is_part)
    select job.id, ${runAt}, ${raw(`${of(stage)}, ${of(attempt)}, ${of(failures)}, ${of(crashes)}, ${of(isFlawed)}`)},
      job.kind, job.queue, job.tenant, job.priority, job.crash_budget, job.barrier_id, job.is_part
    from ${raw(source)} as back
    join holdfast.job on job.id = back.id`
}
