import type { HeldFence, JobId } from '../job/id.ts'
import { plainList } from '../store/lists.ts'
import { raw, type Sql, sql, statement } from '../store/sql.ts'
import { isNoSuspect, isSuspect } from '../store/suspect.sql.ts'
import type { Lane } from './lanes.ts'

/**
 * Claimed jobs of one lease, as the database hands them over: those whose input stands in their row all in one, any other alone. A row each
 * would cost this process more to read than all else that it does for a short job; and large inputs together might be more than one text
 * can hold.
 */
export interface ClaimedLot {
  lease_id: number
  lease_size: number
  kind: string
  stage: number
  /** Each list as Postgres writes it. What is missing is what most jobs have; what all have in common may be told once, without braces. */
  ids: string
  slots: string
  tenants: string
  /** In milliseconds since 1970: how a time is written depends on the settings of the server. */
  submitted: string
  priorities: string
  attempts: string | null
  failures: string | null
  crashes: string | null
  /** The barriers of those that run a part of their parent's stage. */
  parts: string | null
  inputs: string | null
  outputs: string | null
  trace: string | null
}

/** Stands between the texts of a lot. Neither JSON nor any name holds it. */
export const separator = '\x1e'

/** What a claim asks for. */
export interface Claim {
  sessionId: number
  lanes: Lane[]
  most: number
  /** For each kind, for each stage, how long after now() the attempt is taken for hung. */
  deadlinesMs: string
}

/** Which of the jobs that a claim has picked it takes. */
export interface ClaimMore {
  taken: (picked: Sql) => Sql
}

const nothingMore: ClaimMore = { taken: (picked) => sql`select place from (${picked}) as picked` }

let lastRead: { text: string; commonMs: number | null } = { text: '', commonMs: null }

/** The time that all stages of all kinds have, if they have the same, as most do: else it is looked up for every row. */
function commonMs(text: string): number | null {
  if (text !== lastRead.text) {
    const all = new Set(Object.values<number[]>(JSON.parse(text)).flat())
    lastRead = { text, commonMs: all.size === 1 ? ([...all][0] as number) : null }
  }
  return lastRead.commonMs
}

/**
 * Claims up to `most` due jobs, lane after lane: takes them out of `ready`, and makes a lease for those of each kind and stage. The inner
 * select locks row by row and stops at the limit, and `any(array(…))` runs it once, so no more is ever locked or claimed than asked for,
 * whatever the planner thinks of the tables. Items of fan-outs have leases of their own: whoever cancels a fan-out looks for no others.
 */
export function claimThose(p: Claim, which: Sql, answer: Sql, more: ClaimMore = nothingMore): Sql {
  const picked = sql`
      select picked.id, picked.place
      from unnest(
        ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[],
        ${p.lanes.map((lane) => lane.priority)}::smallint[], ${p.lanes.map((lane) => lane.stageCount)}::smallint[]
      ) as lane (queue, kind, priority, stage_count)
      cross join lateral (
        select job.job_id as id, job.ctid as place
        from holdfast.ready as job
        where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority
          and job.run_at <= now() and job.stage < lane.stage_count
          and ${which}
        order by job.run_at
        limit ${p.most}
        for update skip locked
      ) as picked
      where exists (select from holdfast.session where id = ${p.sessionId}::bigint and ended_at is null)
        and not exists (select from holdfast.queue where name = lane.queue and paused_at is not null)
      limit ${p.most}`
  return sql`
  with taken as (
    delete from holdfast.ready
    where ready.ctid = any(array(${more.taken(picked)}
    ))
    returning ready.*
  ),
  grouped as materialized (
    select kind, queue, stage, max(run_at) as due_at, case when min(tenant collate "C") = max(tenant collate "C") then min(tenant collate "C") end as tenant,
      array_agg(barrier_id) filter (where barrier_id is not null) as barrier_ids, array_agg(job_id) as job_ids,
      case when max(attempt) > 0 then array_agg(attempt + 1) end as attempts, case when max(failures) > 0 then array_agg(failures) end as failures,
      case when max(crashes) > 0 then array_agg(crashes) end as crashes, case when bool_or(is_flawed) then array_agg(is_flawed) end as flawed
    from taken
    group by kind, queue, stage, barrier_id is not null
  ),
  leased as (
    insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, kind, queue, tenant, done, barrier_ids, job_ids, attempts,
      failures, crashes, flawed)
    select ${p.sessionId}::bigint,
      now() + coalesce(${commonMs(p.deadlinesMs)}::float8, (${p.deadlinesMs}::jsonb -> kind ->> stage)::float8) * interval '1 ms', due_at,
      (select id from unnest(job_ids) as one (id) order by id limit 1), (select id from unnest(job_ids) as one (id) order by id desc limit 1),
      stage, kind, queue, tenant, repeat('0', cardinality(job_ids))::varbit,
      case when barrier_ids is not null then array(select distinct id from unnest(barrier_ids) as one (id)) end, job_ids, attempts, failures, crashes, flawed
    from grouped
    returning *
  ),
  told as (
    select leased.id as lease_id, length(leased.done) as lease_size, (one.number - 1)::int as slot, job.id, leased.kind, leased.queue, job.tenant,
      leased.tenant as one_tenant, leased.stage,
      coalesce(one.attempt, 1) as attempt, coalesce(one.failures, 0::smallint) as failures, coalesce(one.crashes, 0::smallint) as crashes, job.priority,
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
  )
  ${answer}`
}

const ms = `floor(date_part('epoch', submitted_at) * 1000 + 0.001)::bigint`

const inLots = raw(`
  select lease_id, min(lease_size) as lease_size, min(kind) as kind, min(stage) as stage, array_agg(id)::text as ids, array_agg(slot)::text as slots,
    coalesce(min(one_tenant), array_agg(tenant)::text) as tenants,
    case when min(submitted_at) = max(submitted_at) then min(${ms})::text else array_agg(${ms})::text end as submitted,
    case when min(priority) = max(priority) then min(priority)::text else array_agg(priority)::text end as priorities,
    case when max(attempt) > 1 then array_agg(attempt)::text end as attempts, case when max(failures) > 0 then array_agg(failures)::text end as failures,
    case when max(crashes) > 0 then array_agg(crashes)::text end as crashes,
    case when bool_or(is_part) then array_agg(case when is_part then barrier_id end)::text end as parts,
    string_agg(coalesce(input, own_input)::text, E'\\x1e') as inputs, min(outputs) as outputs, min(trace) as trace
  from told
  group by lease_id, case when input is null or stage > 0 then id end`)

/** Claims jobs that are not suspected of killing their workers. */
export const claimJobs = statement<ClaimedLot>()('job.claim', (p: Claim) => claimThose(p, isNoSuspect, inLots))

/** Claims jobs that are suspected of it. */
export const claimSuspects = statement<ClaimedLot>()('job.claim_suspects', (p: Claim) =>
  claimThose(p, isSuspect, inLots),
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

/** Which of these attempts are no longer this worker's, and whether that is because the job was cancelled. */
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

/** Attempts in this session's name of leases that it does not know: their claim was carried out, and its answer lost. */
export const unheldAttempts = statement<HeldRow>()(
  'attempt.unheld',
  (p: { sessionId: number; leaseIds: number[] }) => sql`
  select running.job_id as id, running.attempt, running.session_id, running.lease_id, running.slot, running.size
  from holdfast.running
  where running.session_id = ${p.sessionId}::bigint and running.lease_id <> all(${p.leaseIds}::bigint[])`,
)

/** An attempt, and where it is held. */
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

/** Kinds to be made known, each at the same place of all lists. */
export interface Kinds {
  /** Whose jobs they decide about; empty for all tenants. */
  tenant: string
  names: string[]
  queues: string[]
  priorities: number[]
  crashBudgets: number[]
  stages: string[]
}

/**
 * Inserts kinds, or says anew what they are, if that condition holds. What was said a moment ago is not written again: a worker that is
 * started over and over would leave nothing but dead rows.
 */
export const writeKinds = (p: Kinds, condition: Sql) => sql`
  insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages)
  select ${p.tenant}::text, name, queue, priority, crash_budget, stages::json
  from unnest(${p.names}::text[], ${p.queues}::text[], ${p.priorities}::smallint[], ${p.crashBudgets}::smallint[], ${p.stages}::text[])
    as given (name, queue, priority, crash_budget, stages)
  where ${condition}
  order by name
  on conflict (tenant, name) do update
  set queue = excluded.queue, priority = excluded.priority, crash_budget = excluded.crash_budget, stages = excluded.stages, seen_at = now()
  where kind.seen_at < now() - interval '1 minute'
    or (kind.queue, kind.priority, kind.crash_budget, kind.stages::text)
      is distinct from (excluded.queue, excluded.priority, excluded.crash_budget, excluded.stages::text)`

/** Makes the kinds known that this program can run. */
export const registerKinds = statement<never>()('kind.register', (p: Kinds) => writeKinds(p, raw('true')))
