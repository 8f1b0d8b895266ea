import { suspectCrashes } from '../job/define.ts'
import type { Fence } from '../job/id.ts'
import { legal, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import type { Lane } from './lanes.ts'

/** A claimed job, as the database hands it over. */
export interface ClaimedRow {
  id: string
  kind: string
  queue: string
  tenant: string
  stage: number
  attempt: number
  failures: number
  crashes: number
  priority: number
  submitted_at: Date
  input: string | null
  outputs: string | null
  is_part: boolean
  trace: string | null
}

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
  selected: Sql
  taken: (picked: Sql) => Sql
}

const nothingMore: ClaimMore = { returned: raw(''), selected: raw(''), taken: (picked) => picked }

/**
 * Claims up to `most` due jobs, lane after lane. The inner select locks row by row and stops at the limit, and `any(array(…))`
 * runs it once, so no more is ever locked or claimed than asked for, whatever the planner thinks of the tables.
 */
export function claimThose(p: Claim, which: Sql, more: ClaimMore = nothingMore): Sql {
  const picked = sql`
      select picked.id
      from unnest(
        ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[],
        ${p.lanes.map((lane) => lane.priority)}::smallint[], ${p.lanes.map((lane) => lane.stageCount)}::smallint[]
      ) as lane (queue, kind, priority, stage_count)
      cross join lateral (
        select job.id
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
      deadline_at = now() + (${p.deadlinesMs}::jsonb -> job.kind ->> job.stage)::float8 * interval '1 ms'
    where job.id = any(array(${more.taken(picked)}
    ))
    returning job.id, job.kind, job.queue, job.tenant, job.stage, job.attempt, job.failures, job.crashes, job.priority, job.submitted_at, job.is_part${more.returned}
  )
  select claimed.*, payload.input::text as input, payload.trace,
    case when claimed.stage > 0 then (
      select json_object_agg(output.name, output.output)::text
      from holdfast.stage_output as output
      where output.job_id = claimed.id and output.stage < claimed.stage
    ) end as outputs${more.selected}
  from claimed
  left join holdfast.job_payload as payload on payload.job_id = claimed.id`
}

/** Claims jobs that are not suspected of killing their workers. */
export const claimJobs = statement<ClaimedRow>()('job.claim', (p: Claim) =>
  claimThose(p, raw(`job.crashes < ${suspectCrashes}`)),
)

/** Claims jobs that have lost several workers already. The number stands in the text, or their index could not be used. */
export const claimSuspects = statement<ClaimedRow>()('job.claim_suspects', (p: Claim) =>
  claimThose(p, raw(`job.crashes >= ${suspectCrashes}`)),
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
  select mine.id, mine.attempt, finished.state
  from unnest(${p.ids}::uuid[], ${p.attempts}::int[]) as mine (id, attempt)
  left join holdfast.live_job as job on job.id = mine.id and job.attempt = mine.attempt and ${legal('finish')}
  left join holdfast.finished_job as finished on finished.id = mine.id
  where job.id is null`,
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
  names: string[]
  queues: string[]
  priorities: number[]
  crashBudgets: number[]
  stages: string[]
}

/** The insert of kinds; whoever uses it says what becomes of those that are known already. */
export const insertKinds = (p: Kinds) => sql`
  insert into holdfast.kind (name, queue, priority, crash_budget, stages)
  select name, queue, priority, crash_budget, stages::json
  from unnest(${p.names}::text[], ${p.queues}::text[], ${p.priorities}::smallint[], ${p.crashBudgets}::smallint[], ${p.stages}::text[])
    as given (name, queue, priority, crash_budget, stages)
  order by name`

/** Makes the kinds known that this program can run. */
export const registerKinds = statement<never>()(
  'kind.register',
  (p: Kinds) => sql`
  ${insertKinds(p)}
  on conflict (name) do update
  set queue = excluded.queue, priority = excluded.priority, crash_budget = excluded.crash_budget, stages = excluded.stages, seen_at = now()`,
)
