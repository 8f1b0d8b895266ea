import type { HeldFence, JobId } from '../job/id.ts'
import { plainList } from '../postgres/array-text.ts'
import { type Sql, sql, statement } from '../postgres/sql.ts'
import { batchesOf, type ClaimAnswer, type ClaimBatch, claimOf, type Holder } from '../transitions/claim.sql.ts'
import { fitting, isLight } from '../transitions/claim-size.sql.ts'
import { isGated } from '../transitions/gates.sql.ts'
import { isNoSuspect, isSuspect } from '../transitions/suspect.sql.ts'
import type { Lane } from './lanes.ts'

/** What a claim asks for. */
export interface Claim {
  sessionId: number
  lanes: Lane[]
  /** Where to start in each lane, in microseconds since 1970 (see floors.ts). Missing or null: at the beginning. */
  floors?: (number | null)[]
  most: number
  /** The size of inputs and outputs at which the claim takes no more jobs. It takes the first job whatever its size. */
  mostBytes: number
  /** For each kind and stage, how long after now() the attempt counts as hung, as JSON. */
  deadlinesMs: string
}

let lastRead: { text: string; commonMs: number | null } = { text: '', commonMs: null }

/** The deadline of all stages, if they share one, as most do; null if it must be looked up for each lease. */
function commonMs(text: string): number | null {
  if (text !== lastRead.text) {
    const all = new Set(Object.values<number[]>(JSON.parse(text)).flat())
    lastRead = { text, commonMs: all.size === 1 ? ([...all][0] as number) : null }
  }
  return lastRead.commonMs
}

/** The due jobs of these lanes, locked row by row until there are `most`. */
const picking = (p: Claim, which: Sql): Sql => sql`
      select picked.place, picked.is_light
      from unnest(
        ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[],
        ${p.lanes.map((lane) => lane.priority)}::smallint[], ${p.lanes.map((lane) => lane.stageCount)}::smallint[],
        ${p.floors ?? []}::float8[]
      ) as lane (queue, kind, priority, stage_count, floor_us)
      cross join lateral (
        select job.ctid as place, ${isLight} as is_light
        from holdfast.ready as job
        where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority
          and job.run_at >= coalesce('epoch'::timestamptz + lane.floor_us * interval '1 us', '-infinity') and job.run_at <= now()
          and job.stage < lane.stage_count
          and ${which}
        order by job.run_at
        limit ${p.most}
        for update skip locked
      ) as picked
      where exists (select from holdfast.session where id = ${p.sessionId}::bigint and ended_at is null)
        and not exists (select from holdfast.queue where name = lane.queue and paused_at is not null)
        and not ${isGated('lane')}
      limit ${p.most}`

/** Who claims, and how long after now() its attempts count as hung. */
export function holderOf({ sessionId, deadlinesMs }: Pick<Claim, 'sessionId' | 'deadlinesMs'>): Holder {
  const deadlineMs = sql`coalesce(${commonMs(deadlinesMs)}::float8, (${deadlinesMs}::jsonb -> kind ->> stage)::float8)`
  return { sessionId, deadlineMs }
}

/**
 * Claims up to `most` due jobs of up to `mostBytes`, lane by lane: takes them out of `ready`, and creates a lease for those of each kind and
 * stage. The inner select locks row by row and stops at the limit, and as a subquery that returns one array it is run once. So a claim never
 * locks or takes more than it asks for, whatever the planner believes about the tables.
 */
export function claimThose(p: Claim, which: Sql, how: ClaimAnswer): Sql {
  return claimOf({
    places: sql`coalesce((${fitting(picking(p, which), p.mostBytes)}
    ), '{}'::tid[])`,
    holder: holderOf(p),
    isGated: false,
    how,
  })
}

/** Claims jobs that aren't suspected of killing their workers. */
export const claimJobs = statement<ClaimBatch>()('job.claim', (p: Claim) => claimThose(p, isNoSuspect, batchesOf))

/** Claims jobs that are suspected of killing their workers. */
export const claimSuspects = statement<ClaimBatch>()('job.claim_suspects', (p: Claim) =>
  claimThose(p, isSuspect, batchesOf),
)

/** When the next job of these lanes is due, in milliseconds from now; null if none waits. */
export const nextDue = statement<{ due_ms: number | null }>()(
  'job.next_due',
  (p: { lanes: Lane[] }) => sql`
  select (extract(epoch from min(first.run_at) - now()) * 1000)::float8 as due_ms
  from unnest(
    ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[], ${p.lanes.map((lane) => lane.priority)}::smallint[]
  ) as lane (queue, kind, priority)
  cross join lateral (
    select job.run_at
    from holdfast.ready as job
    where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority and job.run_at > now()
    order by job.run_at
    limit 1
  ) as first`,
)

/** Which of these attempts no longer belong to this worker, and the state of their job, if it has ended. */
export const lostAttempts = statement<{ id: string; attempt: number; state: string | null }>()(
  'attempt.lost',
  (p: { fences: readonly HeldFence[] }) => sql`
  select mine.id, mine.attempt, (select outcome.state from holdfast.outcome where outcome.job_id = mine.id)
  from unnest(
    ${plainList(p.fences.map(({ id }) => id))}::uuid[], ${plainList(p.fences.map(({ attempt }) => attempt))}::int[],
    ${plainList(p.fences.map(({ leaseId }) => leaseId))}::bigint[], ${plainList(p.fences.map(({ slot }) => slot))}::int[]
  ) as mine (id, attempt, lease_id, slot)
  where coalesce((select get_bit(lease.done, mine.slot) from holdfast.lease where lease.id = mine.lease_id), 1) = 1`,
)

/** The leases that a worker knows, and which of their attempts it holds, as bits. Without masks, it holds all. */
export interface KnownLeases {
  leaseIds: readonly number[]
  masks?: readonly string[]
}

/**
 * Attempts that are held in a session's name without its knowledge: the answer to their claim was lost, or the thread
 * that was to release them died. They are compared by lease and slot, because a released job may have been claimed
 * again. The cost grows with the number of leases, not of jobs, and a full join is never planned as a nested loop.
 */
export const unheldAttempts = statement<HeldRow>()(
  'attempt.unheld',
  (p: KnownLeases & { sessionId: number }) => sql`
  with paired as materialized (
    select lease.id, lease.done, known.lease_id, known.bits
    from (select id, done from holdfast.lease where session_id = ${p.sessionId}::bigint) as lease
    full join unnest(${plainList(p.leaseIds)}::bigint[], ${plainList(p.masks ?? [])}::varbit[]) as known (lease_id, bits) on known.lease_id = lease.id
  )
  select running.job_id as id, running.attempt, running.session_id, running.lease_id, running.slot, running.size
  from paired
  cross join lateral (
    select *
    from holdfast.running
    where running.lease_id = paired.id and coalesce(get_bit(paired.bits, running.slot), 0) = 0
  ) as running
  where paired.lease_id is null or bit_count(paired.done | paired.bits) < length(paired.done)`,
)

/** An attempt, with the lease and slot that hold it. */
export interface HeldRow {
  id: string
  attempt: number
  session_id: number
  lease_id: number
  slot: number
  size: number
}

/** The fence of such a row. */
export function fenceOfHeld(row: HeldRow): HeldFence {
  const { id, attempt, session_id, lease_id, slot, size } = row
  return { id: id as JobId, attempt, sessionId: session_id, leaseId: lease_id, slot, leaseSize: size }
}
