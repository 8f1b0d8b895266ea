import type { Fence } from '../job/id.ts'
import { plainList } from '../store/lists.ts'
import { legal, legalOfMine, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import { isNoSuspect, isSuspect } from '../store/suspect.sql.ts'
import type { Lane } from './lanes.ts'

/**
 * Claimed jobs, as the database hands them over: those whose input stands in their row all in one, any other alone. A row each would cost
 * this process more to read than all else that it does for a short job; and large inputs together might be more than one text can hold.
 */
export interface ClaimedLot {
  ids: string
  kinds: string
  tenants: string
  /** In seconds since 1970: how a time is written depends on the settings of the server. */
  submitted: string
  /** Priority, stage, attempt, failures, crashes and whether it is a part; nothing where a job is what most are. */
  numbers: string
  inputs: string | null
  outputs: string | null
  trace: string | null
}

/** What a job has that says nothing of it. */
export const usualPriority = 2

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

/** What a claim answers beside the usual, and which of the jobs that it has picked it takes. */
export interface ClaimMore {
  returned: Sql
  taken: (picked: Sql) => Sql
}

const nothingMore: ClaimMore = { returned: raw(''), taken: (picked) => sql`select place from (${picked}) as picked` }

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
 * Claims up to `most` due jobs, lane after lane. The inner select locks row by row and stops at the limit, and `any(array(…))`
 * runs it once, so no more is ever locked or claimed than asked for, whatever the planner thinks of the tables. A row that is changed
 * between the statement's snapshot and its lock has moved and is not found again by its place: it is left to the next claim.
 */
export function claimThose(p: Claim, which: Sql, answer: Sql, more: ClaimMore = nothingMore): Sql {
  const picked = sql`
      select picked.id, picked.place
      from unnest(
        ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[],
        ${p.lanes.map((lane) => lane.priority)}::smallint[], ${p.lanes.map((lane) => lane.stageCount)}::smallint[]
      ) as lane (queue, kind, priority, stage_count)
      cross join lateral (
        select job.id, job.ctid as place
        from holdfast.live_job as job
        where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority
          and ${legal('claim')} and job.run_at <= now() and job.stage < lane.stage_count
          and ${which}
        order by job.run_at
        limit ${p.most}
        for update skip locked
      ) as picked
      where exists (select from holdfast.session where id = ${p.sessionId}::bigint and ended_at is null)
        and not exists (select from holdfast.queue where name = lane.queue and paused_at is not null)
      limit ${p.most}`
  return sql`
  with claimed as (
    update holdfast.live_job as job
    set state = ${target('claim')}, attempt = job.attempt + 1, session_id = ${p.sessionId}::bigint,
      deadline_at = now() + coalesce(${commonMs(p.deadlinesMs)}::float8, (${p.deadlinesMs}::jsonb -> job.kind ->> job.stage)::float8) * interval '1 ms'
    where job.ctid = any(array(${more.taken(picked)}
    ))
    returning job.id, job.kind, job.queue, job.tenant, job.stage, job.attempt, job.failures, job.crashes, job.priority, job.submitted_at, job.is_part, job.barrier_id,
      job.input${more.returned}
  ),
  told as (
    select claimed.*, payload.input as own_input, payload.trace, case when claimed.stage > 0 then (
        select json_object_agg(output.name, output.output)::text
        from holdfast.stage_output as output
        where output.job_id = claimed.id and output.stage < claimed.stage
      ) end as outputs
    from claimed
    left join holdfast.job_payload as payload on payload.job_id = case when claimed.input is null then claimed.id end
  )
  ${answer}`
}

const listed = (what: string) => raw(`string_agg((${what})::text, E'\\x1e')`)

const inLots = sql`
  select array_agg(id)::text as ids, ${listed('kind')} as kinds, ${listed('tenant')} as tenants,
    ${listed(`date_part('epoch', submitted_at)`)} as submitted,
    ${listed(`case when attempt > 1 or stage > 0 or failures > 0 or crashes > 0 or is_part or priority <> ${usualPriority}
      then concat_ws(',', priority, stage, attempt, failures, crashes, case when is_part then barrier_id end) else '' end`)} as numbers,
    ${listed('coalesce(input, own_input)')} as inputs, min(outputs) as outputs, min(trace) as trace
  from told
  group by case when input is null or stage > 0 then id end`

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
    from holdfast.live_job as job
    where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority
      and ${legal('claim')} and job.run_at > now()
    order by job.run_at
    limit 1
  ) as first`,
)

/** Which of these attempts are no longer this worker's, and whether that is because the job was cancelled. */
export const lostAttempts = statement<{ id: string; attempt: number; state: string | null }>()(
  'attempt.lost',
  (p: { ids: string[]; attempts: number[] }) => sql`
  with mine as materialized (
    select *
    from unnest(${plainList(p.ids)}::uuid[], ${plainList(p.attempts)}::int[]) as mine (id, attempt)
  ),
  held as materialized (
    select job.id, job.attempt
    from holdfast.live_job as job
    join mine on ${legalOfMine('finish')}
  )
  select mine.id, mine.attempt, (select state from holdfast.finished_job where finished_job.id = mine.id)
  from mine
  where not exists (select from held where held.id = mine.id and held.attempt = mine.attempt)`,
)

/** Attempts in this session's name that it does not hold: their claim was carried out, and its answer lost. */
export const unheldAttempts = statement<Fence>()(
  'attempt.unheld',
  (p: { sessionId: number; ids: string[] }) => sql`
  select job.id, job.attempt
  from holdfast.live_job as job
  where job.session_id = ${p.sessionId}::bigint and ${legal('release')} and job.id <> all(${p.ids}::uuid[])`,
)

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

/** Whether a kind is known as it is. */
const isKnown = (given: string) =>
  raw(`(kind.queue, kind.priority, kind.crash_budget, kind.stages::text) is not distinct from
    (${given}.queue, ${given}.priority, ${given}.crash_budget, ${given}.stages::text)`)

const givenKinds = (p: Kinds) => sql`
  unnest(${p.names}::text[], ${p.queues}::text[], ${p.priorities}::smallint[], ${p.crashBudgets}::smallint[], ${p.stages}::text[])
    as given (name, queue, priority, crash_budget, stages)`

/**
 * Marks those as seen that are known as they are, as a CTE. What was said a moment ago is not written again: a worker that is started over
 * and over would leave nothing but dead rows. And a row that somebody holds keeps no worker from starting.
 */
export const seeingKinds = (p: Kinds) => sql`seen as (
    update holdfast.kind
    set seen_at = now()
    where tenant = ${p.tenant}::text and name = any(array(
      select kind.name
      from holdfast.kind
      join ${givenKinds(p)} on kind.name = given.name
      where kind.tenant = ${p.tenant}::text and ${isKnown('given')} and kind.seen_at < now() - interval '1 minute'
      for update of kind skip locked
    ))
  )`

/** Inserts kinds, or says anew what they are, if that condition holds. Those that are known as they are stay as they are. */
export const writeKinds = (p: Kinds, condition: Sql) => sql`
  insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages)
  select ${p.tenant}::text, name, queue, priority, crash_budget, stages::json
  from ${givenKinds(p)}
  where ${condition} and not exists (
      select
      from holdfast.kind
      where kind.tenant = ${p.tenant}::text and kind.name = given.name and ${isKnown('given')}
    )
  order by name
  on conflict (tenant, name) do update
  set queue = excluded.queue, priority = excluded.priority, crash_budget = excluded.crash_budget, stages = excluded.stages, seen_at = now()
  where not ${isKnown('excluded')}`

/** Makes the kinds known that this program can run. */
export const registerKinds = statement<never>()(
  'kind.register',
  (p: Kinds) => sql`
  with ${seeingKinds(p)}
  ${writeKinds(p, raw('true'))}`,
)
