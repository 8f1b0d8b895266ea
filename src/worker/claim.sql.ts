import type { HeldFence, JobId } from '../job/id.ts'
import { plainList } from '../postgres/array-text.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isNoSuspect, isSuspect } from '../transitions/suspect.sql.ts'
import { fitting, isLight } from './claim-size.sql.ts'
import type { Lane } from './lanes.ts'

/**
 * Claimed jobs of one lease, as the database returns them. Jobs whose input is stored in their row share one batch,
 * because a result row for each would cost more to parse than everything else a worker does for a short job. All others
 * get a batch each, because large inputs together might not fit into one string.
 */
export interface ClaimBatch {
  lease_id: number
  lease_size: number
  kind: string
  queue: string
  stage: number
  priority: number
  /** When the last job of the lease was due, in microseconds since 1970. */
  due_us: number
  /** Lists are in Postgres syntax. Null stands for the usual value; without braces, all jobs have the same value. */
  ids: string
  /** Null if the batch holds the whole lease, in order. */
  slots: string | null
  tenants: string
  /** In milliseconds since 1970, because the text form of a time depends on the server's settings. */
  submitted: string
  attempts: string | null
  failures: string | null
  crashes: string | null
  /** The barriers of the jobs that run a part of their parent's stage. */
  parts: string | null
  inputs: string | null
  outputs: string | null
  trace: string | null
}

/** Separates the inputs of a batch. JSON never contains it. */
export const separator = '\x1e'

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

/** How a claim returns what it took. */
export interface ClaimMore {
  /** More columns of `grouped`, and the condition for a lease to be in `told`, job by job. */
  lightColumns: Sql
  isTold: Sql
}

/** Returns each job in a row. */
export const tellingAll: ClaimMore = {
  lightColumns: raw('null as inputs'),
  isTold: raw('true'),
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
      limit ${p.most}`

/**
 * The taken jobs, one group for each lease. Items of fan-outs get leases of their own, so that cancelling a fan-out
 * need not look at any others.
 */
const grouping = (more: ClaimMore): Sql => sql`
    select floor(random() * 9007199254740991)::bigint as id, kind, queue, stage, priority, ${isLight} as is_light, max(run_at) as due_at,
      case when min(tenant collate "C") = max(tenant collate "C") then min(tenant collate "C") end as tenant,
      array_agg(barrier_id) filter (where barrier_id is not null) as barrier_ids, array_agg(job_id) as job_ids,
      case when max(attempt) > 0 then array_agg(attempt + 1) end as attempts, case when max(failures) > 0 then array_agg(failures) end as failures,
      case when max(crashes) > 0 then array_agg(crashes) end as crashes, case when bool_or(is_flawed) then array_agg(is_flawed) end as flawed,
      ${more.lightColumns}
    from taken
    group by kind, queue, stage, priority, barrier_id is not null, ${isLight}`

/** Inserts the leases. */
const leasing = (p: Claim): Sql => sql`
    insert into holdfast.lease (id, session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, barrier_ids, job_ids, attempts,
      failures, crashes, flawed)
    select id, ${p.sessionId}::bigint,
      now() + coalesce(${commonMs(p.deadlinesMs)}::float8, (${p.deadlinesMs}::jsonb -> kind ->> stage)::float8) * interval '1 ms', due_at,
      (select id from unnest(job_ids) as one (id) order by id limit 1), (select id from unnest(job_ids) as one (id) order by id desc limit 1),
      stage, priority, kind, queue, tenant, repeat('0', cardinality(job_ids))::varbit,
      case when barrier_ids is not null then array(select distinct id from unnest(barrier_ids) as one (id)) end, job_ids, attempts, failures, crashes, flawed
    from grouped
    returning *`

/** The leased jobs one by one, with what their own rows say. */
const telling = (more: ClaimMore): Sql => sql`
    select leased.id as lease_id, length(leased.done) as lease_size, (one.number - 1)::int as slot, job.id, leased.kind, leased.queue, job.tenant,
      leased.tenant as one_tenant, leased.stage, leased.due_at,
      coalesce(one.attempt, 1) as attempt, coalesce(one.failures, 0::smallint) as failures, coalesce(one.crashes, 0::smallint) as crashes, leased.priority,
      job.submitted_at, leased.deadline_at, job.is_part, job.barrier_id, job.input, payload.input as own_input, payload.trace,
      case when leased.stage > 0 then (
        select json_object_agg(output.name, output.output)::text
        from holdfast.stage_output as output
        where output.job_id = job.id and output.stage < leased.stage
      ) end as outputs
    from leased
    cross join lateral unnest(leased.job_ids, leased.attempts, leased.failures, leased.crashes) with ordinality as one (job_id, attempt, failures, crashes, number)
    cross join lateral (select * from holdfast.job where job.id = one.job_id limit 1) as job
    left join holdfast.job_payload as payload on payload.job_id = case when job.input is null then job.id end
    where ${more.isTold}`

/**
 * Claims up to `most` due jobs of up to `mostBytes`, lane by lane: takes them out of `ready`, and creates a lease for those of each kind and
 * stage. The inner select locks row by row and stops at the limit, and as a subquery that returns one array it is run once. So a claim never
 * locks or takes more than it asks for, whatever the planner believes about the tables.
 */
export function claimThose(p: Claim, which: Sql, answer: Sql, more: ClaimMore): Sql {
  return sql`
  with taken as (
    delete from holdfast.ready
    where ready.ctid = any(coalesce((${fitting(picking(p, which), p.mostBytes)}
    ), '{}'::tid[]))
    returning ready.*
  ),
  grouped as materialized (${grouping(more)}
  ),
  leased as (${leasing(p)}
  ),
  told as (${telling(more)}
  )
  ${answer}`
}

const msOf = (at: string) => `floor(date_part('epoch', ${at}) * 1000 + 0.001)::bigint`

/** Light jobs are returned as they were taken; all others are read from their own rows. */
const inBatches = raw(`
  select id as lease_id, cardinality(job_ids) as lease_size, kind, queue, stage, priority, (date_part('epoch', due_at) * 1000000)::bigint as due_us,
    job_ids::text as ids, null as slots, coalesce(tenant, tenants::text) as tenants,
    case when first_at = last_at then ${msOf('first_at')}::text else (select array_agg(${msOf('at')})::text from unnest(submitted) as one (at)) end as submitted,
    attempts::text, failures::text, crashes::text, parts::text, inputs, null as outputs, null as trace
  from grouped
  where is_light
  union all
  select lease_id, min(lease_size), min(kind), min(queue), min(stage), min(priority), (date_part('epoch', min(due_at)) * 1000000)::bigint,
    array_agg(id)::text, array_agg(slot)::text, coalesce(min(one_tenant), array_agg(tenant)::text),
    case when min(submitted_at) = max(submitted_at) then ${msOf('min(submitted_at)')}::text else array_agg(${msOf('submitted_at')})::text end,
    case when max(attempt) > 1 then array_agg(attempt)::text end, case when max(failures) > 0 then array_agg(failures)::text end,
    case when max(crashes) > 0 then array_agg(crashes)::text end,
    case when bool_or(is_part) then array_agg(case when is_part then barrier_id end)::text end,
    string_agg(coalesce(input, own_input)::text, E'\\x1e'), min(outputs), min(trace)
  from told
  group by lease_id, case when input is null or stage > 0 then id end`)

const batchesOf: ClaimMore = {
  lightColumns:
    raw(`min(submitted_at) as first_at, max(submitted_at) as last_at, array_agg(submitted_at) as submitted, array_agg(tenant) as tenants,
      case when bool_or(is_part) then array_agg(case when is_part then barrier_id end) end as parts, string_agg(input, E'\\x1e') as inputs`),
  isTold: raw('leased.id in (select id from grouped where not is_light)'),
}

/** Claims jobs that aren't suspected of killing their workers. */
export const claimJobs = statement<ClaimBatch>()('job.claim', (p: Claim) =>
  claimThose(p, isNoSuspect, inBatches, batchesOf),
)

/** Claims jobs that are suspected of killing their workers. */
export const claimSuspects = statement<ClaimBatch>()('job.claim_suspects', (p: Claim) =>
  claimThose(p, isSuspect, inBatches, batchesOf),
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
