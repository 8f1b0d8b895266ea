import { raw, type Sql, sql } from '../postgres/sql.ts'
import { isLight } from './claim-size.sql.ts'

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

/** How a claim returns the jobs that it takes. */
export interface ClaimAnswer {
  /** More columns of `grouped`, and the condition for a lease to be in `told`, job by job. */
  lightColumns: Sql
  isTold: Sql
  /** What the statement returns, from `grouped` and `told`. */
  answer: Sql
}

/** Returns each in a row. */
export const tellingAll: Omit<ClaimAnswer, 'answer'> = {
  lightColumns: raw('null as inputs'),
  isTold: raw('true'),
}

/** Who claims, and how long after now() an attempt of a lease in `grouped` counts as hung. */
export interface Holder {
  sessionId: unknown
  deadlineMs: Sql
}

/**
 * The taken jobs, one group for each lease. Items of fan-outs get leases of their own, so that cancelling a fan-out
 * need not look at any others.
 */
const grouping = (more: ClaimAnswer, isGated: boolean): Sql => sql`
    select floor(random() * 9007199254740991)::bigint as id, kind, queue, stage, priority, ${isLight} as is_light, max(run_at) as due_at,
      case when min(tenant collate "C") = max(tenant collate "C") then min(tenant collate "C") end as tenant,
      array_agg(barrier_id) filter (where barrier_id is not null) as barrier_ids, array_agg(job_id) as job_ids,
      case when max(attempt) > 0 then array_agg(attempt + 1) end as attempts, case when max(failures) > 0 then array_agg(failures) end as failures,
      case when max(crashes) > 0 then array_agg(crashes) end as crashes, case when bool_or(is_flawed) then array_agg(is_flawed) end as flawed,
      ${raw(isGated ? 'gate_key' : 'null::text as gate_key')}, ${more.lightColumns}
    from taken
    group by kind, queue, stage, priority, barrier_id is not null, ${isLight}${raw(isGated ? ', gate_key' : '')}`

/** Inserts the leases. */
const leasing = (p: Holder): Sql => sql`
    insert into holdfast.lease (id, session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, barrier_ids, job_ids, attempts,
      failures, crashes, flawed, gate_key)
    select id, ${p.sessionId}::bigint, now() + ${p.deadlineMs} * interval '1 ms', due_at,
      (select id from unnest(job_ids) as one (id) order by id limit 1), (select id from unnest(job_ids) as one (id) order by id desc limit 1),
      stage, priority, kind, queue, tenant, repeat('0', cardinality(job_ids))::varbit,
      case when barrier_ids is not null then array(select distinct id from unnest(barrier_ids) as one (id)) end, job_ids, attempts, failures, crashes, flawed, gate_key
    from grouped
    returning *`

/** The leased jobs one by one, with what their own rows say. */
const telling = (more: ClaimAnswer): Sql => sql`
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

/** Which rows of `ready` a claim takes, for whom, and how it returns them. */
export interface ClaimShape {
  /** Their places, as a subquery or an array. */
  places: Sql
  holder: Holder
  /** Whether they came through gates: then each lease holds jobs of one gate. */
  isGated: boolean
  how: ClaimAnswer
}

/** Takes jobs out of `ready`, and creates a lease for those of each kind and stage. */
export function claimOf({ places, holder, isGated, how }: ClaimShape): Sql {
  return sql`
  with taken as (
    delete from holdfast.ready
    where ready.ctid = any(${places})
    returning ready.*
  ),
  grouped as materialized (${grouping(how, isGated)}
  ),
  leased as (${leasing(holder)}
  ),
  told as (${telling(how)}
  )
  ${how.answer}`
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

/** Returns them in batches. */
export const batchesOf: ClaimAnswer = {
  lightColumns:
    raw(`min(submitted_at) as first_at, max(submitted_at) as last_at, array_agg(submitted_at) as submitted, array_agg(tenant) as tenants,
      case when bool_or(is_part) then array_agg(case when is_part then barrier_id end) end as parts, string_agg(input, E'\\x1e') as inputs`),
  isTold: raw('leased.id in (select id from grouped where not is_light)'),
  answer: inBatches,
}
