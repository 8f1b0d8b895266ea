/**
 * Leases: where jobs are while workers hold them, and how they leave.
 *
 * The invariant: a job is in exactly one place: `ready`, an open lease (its bit is 0), `waiting` or `outcome`. Every statement that moves a
 * job takes it out of one place and puts it into another. The row that it is taken out of decides who wins:
 * - `ready`: a claim, a cancel and an unpark delete the row; one of them gets it.
 * - a lease: a settle, cancel, revive or release locks the row of the lease, reads the bits as they are once it has the lock, and moves only
 *   jobs whose bit is 0. It sets their bits, or deletes the lease with the last of them, before it releases the lock.
 * - `waiting`: a join and a cancel delete the row, both while they hold the barrier's row.
 * - `outcome`: a redo and retention delete the row; one of them gets it.
 *
 * What can meet, and what the second one finds:
 * - finish (advance, retry, fail, fan-out, release) against revive or cancel: the bit is set, or the lease is gone. Nothing is written, and
 *   the write is recorded as refused.
 * - cancel against claim: the row in `ready` is gone, and the lease that the claim created is not in the cancel's snapshot. The cancel gets no
 *   row, and tries again: src/submit/cancel.ts.
 * - cancel against a settle that queues or ends the job: the bit is set. The cancel tries again, and finds the job where it is then.
 * - claim against the end of its session: the claim may commit after the reaper has looked. Its lease then has an ended session, and the
 *   next sweep finds it.
 * - revive against revive, by two leaders: the second one skips locked leases instead of waiting; in those that it gets, the bits are set.
 * - join against fan-out: the statement that counts the last item holds the barrier's row, so it comes before or after the fan-out that arms
 *   the barrier. It looks for the parent with a function that has its own snapshot, because the row in `waiting` may be newer than the
 *   snapshot of the statement.
 * - redo against retention (holdfast.remove_jobs): both take the row in `outcome` first. Retention skips a row that a redo has locked, and tries
 *   the job again later; a job that was redone has no outcome by then, or a newer one. A redo that waits for a row that retention has locked
 *   finds it gone, and says so. Rows that belong to a job are deleted only while its outcome is locked.
 * - redo of an item against retention of its parent: a redo updates the item's barrier. Retention locks the barriers of the jobs that it
 *   removes before it looks for live items, and keeps a parent with a live item. If retention comes first, the barrier is gone, and a redo
 *   skips items without one. A redo whose snapshot still shows the barrier queues the item all the same: it runs, its end is counted nowhere,
 *   and it is removed afterwards, because the barrier stays in `prune_items` until it has no items.
 * - retention against retention, by two leaders: one of them locks the row of prune_mark, and the other does nothing.
 * - a page of a bulk operation against anything: it takes the rows that it changes with locks that skip locked ones, in one transaction with the
 *   statements above. A redo or a delete locks outcomes first and barriers after them; where a redo of a single job waits for it, the lock
 *   timeout of the page ends the wait, and the page is repeated in parts.
 * - redo against anything else: nothing else touches the row of a job that has ended.
 *
 * There are no deadlocks. Settles lock leases in the order of their ids, and barriers after them. A cancel and a redo lock barriers first:
 * then a cancel waits for nothing more, and a redo only for outcomes, which nobody holds while waiting for a barrier. All three lock
 * barriers in the order of their ids, and all that they are going to change at once, including the one that the cancelled or redone job is
 * an item of.
 */
import type { HeldFence } from '../job/id.ts'
import { tinyBytes } from '../job/stored.ts'
import { plainList } from '../postgres/array-text.ts'
import { raw, type Sql, sql, textOf } from '../postgres/sql.ts'

/** What a statement needs to find attempts: one entry per attempt, and one per lease with the bits to set. */
interface Places {
  ids: string
  attempts: string
  leaseIds: string
  slots: string
  leases: string
  masks: string
}

/** The leases of attempts, in order, and the bits of those attempts in each. */
export function masksOf(fences: readonly HeldFence[]): { leaseIds: number[]; masks: string[] } {
  const masks = new Map<number, string[]>()
  for (const { leaseId, leaseSize, slot } of fences) {
    let mask = masks.get(leaseId)
    if (!mask) {
      mask = new Array<string>(leaseSize).fill('0')
      masks.set(leaseId, mask)
    }
    mask[slot] = '1'
  }
  const leaseIds = [...masks.keys()].sort((a, b) => a - b)
  return { leaseIds, masks: leaseIds.map((id) => (masks.get(id) as string[]).join('')) }
}

function placesOf(fences: readonly HeldFence[]): Places {
  const { leaseIds, masks } = masksOf(fences)
  return {
    ids: plainList(fences.map(({ id }) => id)),
    attempts: plainList(fences.map(({ attempt }) => attempt)),
    leaseIds: plainList(fences.map(({ leaseId }) => leaseId)),
    slots: plainList(fences.map(({ slot }) => slot)),
    leases: plainList(leaseIds),
    masks: plainList(masks),
  }
}

/** More columns of `mine`: their names, and a list of values for each. */
export interface MoreColumns {
  names: string
  lists: Sql
}

/**
 * Takes attempts out of their leases, as CTEs. `gone` holds those that these fences still own, each with what its lease knows about it; the
 * others are missing there. Attempts and leases are paired by a full join, which the planner can't turn into a nested loop; a condition that
 * is false for null would make it an inner join. The row of a job is read only for what its lease does not know. The ids are concatenated
 * with an empty array so that they are detoasted once and not for each attempt.
 */
export function takingOut(fences: readonly HeldFence[], more?: MoreColumns): Sql {
  const places = placesOf(fences)
  const columns = more
    ? `, ${more.names
        .split(', ')
        .map((name) => `mine.${name}`)
        .join(', ')}`
    : ''
  return sql`
  held as materialized (
    select lease.id as held_id, lease.session_id, lease.kind, lease.stage, lease.due_at, lease.tenant, lease.barrier_ids is not null as has_items, lease.done,
      lease.done | mask.bits as done_then, lease.job_ids || '{}'::uuid[] as ids, lease.attempts as attempts_of, lease.failures as failures_of, lease.crashes as crashes_of, lease.flawed as flawed_of
    from unnest(${places.leases}::bigint[], ${places.masks}::varbit[]) as mask (lease_id, bits)
    cross join lateral (
      select *
      from holdfast.lease
      where lease.id = mask.lease_id
      for no key update
    ) as lease
  ),
  gone as materialized (
    select paired.*, coalesce(held_tenant, own.tenant) as own_tenant, own.barrier_id
    from (
      select mine.place, held.ids[mine.slot + 1] as id, coalesce(held.attempts_of[mine.slot + 1], 1) as attempt, mine.lease_id, mine.slot${raw(columns)}, held.session_id, held.kind, held.stage, held.due_at, held.tenant as held_tenant,
        held.tenant is null or held.has_items as is_told_by_job, coalesce(held.failures_of[mine.slot + 1], 0::smallint) as failures,
        coalesce(held.crashes_of[mine.slot + 1], 0::smallint) as crashes, coalesce(held.flawed_of[mine.slot + 1], false) as is_flawed
      from unnest(${places.leaseIds}::bigint[], ${places.slots}::int[]${more ? sql`, ${more.lists}` : raw('')})
        with ordinality as mine (lease_id, slot${raw(more ? `, ${more.names}` : '')}, place)
      full join held on held.held_id = mine.lease_id
      where coalesce(get_bit(held.done, mine.slot), 1) = 0
    ) as paired
    left join lateral (
      select job.tenant, job.barrier_id
      from holdfast.job
      where job.id = paired.id and paired.is_told_by_job
      limit 1
    ) as own on true
  ),
  ${settingBits}`
}

/** Which attempts to take out: a condition on the rows of `lease`, and one on those of `gone`, as `job`. */
export interface Only {
  lease: Sql
  job: Sql
}

/** The same for those that fulfil a condition; `gone` also has the crash budget. The database computes the bits. */
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
    select mine.id, mine.attempt, mine.lease_id, mine.slot, ${raw(columns.join(', '))}, locked.session_id, locked.kind, locked.stage,
      coalesce(locked.failures[mine.slot + 1], 0::smallint) as failures, coalesce(locked.crashes[mine.slot + 1], 0::smallint) as crashes,
      coalesce(locked.flawed[mine.slot + 1], false) as is_flawed, get_bit(locked.done, mine.slot) = 0 as is_mine
    from mine
    full join locked on locked.id = mine.lease_id
  ),
  gone as materialized (
    select *
    from (
      select paired.*, own.tenant, own.tenant as own_tenant, own.barrier_id, own.crash_budget, own.is_part
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
    from (select lease_id, array_agg(slot) as slots from gone group by lease_id) as mask
    join locked on locked.id = mask.lease_id
  ),
  ${settingBits}`
}

/** Sets the bits of leases to those in `held`, and deletes leases that hold nothing any more. */
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

/** True once the bits are set. A ledger that is read after this does not show what has just left. */
export const areBitsSet = raw('(select count(*) from marked) + (select count(*) from emptied) >= 0')

/** Whether a job exists and has not ended. */
export function isLive(id: string): Sql {
  return raw(
    `(exists (select from holdfast.job as live where live.id = ${id}) and not exists (select from holdfast.outcome as ended where ended.job_id = ${id}))`,
  )
}

/** Whether a queued job, a row of `ready`, waits for a signal at its stage. Then only the signal or its timeout decides when it is due. */
export function isAwaiting(ready: string): Sql {
  return raw(
    `exists (select from holdfast.signal_wait as waits where waits.job_id = ${ready}.job_id and waits.stage = ${ready}.stage and waits.closed_at is null)`,
  )
}

/** When the attempts of a lease count as hung. Time without a leader since the lease was created is added: how much of it has passed for the worker is unknown. */
export function deadlineOf(lease: string): Sql {
  return raw(
    `(${lease}.deadline_at + greatest(0, coalesce((select leader.vacant_ms from holdfast.leader), 0) - ${lease}.vacant_ms) * interval '1 ms')`,
  )
}

/**
 * Where a job is held, as a lateral subquery with the columns of the view `running`; no row if no worker holds it. Unlike that view, it does not
 * unnest leases. It scans the leases whose lowest id is not above the job's, from the nearest one down, which is nearly always the right one.
 */
export function heldPlace(id: string): Sql {
  return raw(`(
      select lease.id as lease_id, spot.number - 1 as slot, length(lease.done) as size, ${id} as job_id, lease.session_id,
        ${textOf(deadlineOf('lease'))} as deadline_at, lease.due_at, lease.kind, lease.queue, lease.stage, coalesce(lease.attempts[spot.number], 1) as attempt,
        coalesce(lease.failures[spot.number], 0::smallint) as failures, coalesce(lease.crashes[spot.number], 0::smallint) as crashes,
        coalesce(lease.flawed[spot.number], false) as is_flawed
      from holdfast.lease
      cross join lateral (select array_position(lease.job_ids, ${id}) as number) as spot
      where ${id} between lease.low_id and lease.high_id and get_bit(lease.done, spot.number - 1) = 0
      order by lease.low_id desc
      limit 1
    )`)
}

/** A column of `job` if its input is tiny, so that a claim need not look it up. */
export const ifTiny = (column: string): Sql =>
  raw(`case when octet_length(job.input::text) <= ${tinyBytes} then job.${column} end`)

/** A count of failures plus one. A kind may be retried any number of times, and the column holds no more than this. */
export const oneMore = (failures: string): string => `least(${failures} + 1, 32767)`

/** How jobs are queued again. `source` has their id; the others are expressions over its rows. */
export interface Requeue {
  source: string
  runAt: Sql
  stage?: string
  attempt?: string
  failures?: string
  crashes?: string
  isFlawed?: string
}

/** Queues jobs again, as an insert. */
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
    insert into holdfast.ready (job_id, run_at, stage, attempt, failures, crashes, is_flawed, kind, queue, tenant, priority, crash_budget, barrier_id, is_part,
      submitted_at, input)
    select job.id, ${runAt}, ${raw(`${of(stage)}, ${of(attempt)}, ${of(failures)}, ${of(crashes)}, ${of(isFlawed)}`)},
      job.kind, job.queue, job.tenant, job.priority, job.crash_budget, job.barrier_id, job.is_part, ${ifTiny('submitted_at')}, ${ifTiny('input::text')}
    from ${raw(source)} as back
    cross join lateral (select * from holdfast.job where job.id = back.id limit 1) as job`
}
