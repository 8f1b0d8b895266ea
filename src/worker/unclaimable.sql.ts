import { raw, sql, statement, target } from '../postgres/sql.ts'
import { type ClaimAnswer, claimOf, tellingAll } from '../transitions/claim.sql.ts'
import { isSuspect } from '../transitions/suspect.sql.ts'
import { type Claim, claimThose, holderOf } from './claim.sql.ts'
import type { GatedClaim } from './gated-claim.sql.ts'
import type { Lane } from './lanes.ts'

/** The due jobs of these lanes, by what `ready` alone says of them: whatever else belongs to a job may be unreadable. */
export const dueIds = statement<{ id: string; is_suspect: boolean }>()(
  'job.due_ids',
  (p: { lanes: Lane[]; mostPerLane: number }) => sql`
  select due.job_id as id, due.is_suspect
  from unnest(
    ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[], ${p.lanes.map((lane) => lane.priority)}::smallint[],
    ${p.lanes.map((lane) => lane.stageCount)}::smallint[]
  ) as lane (queue, kind, priority, stage_count)
  cross join lateral (
    select job.job_id, ${isSuspect} as is_suspect
    from holdfast.ready as job
    where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority and job.run_at <= now() and job.stage < lane.stage_count
    order by job.run_at
    limit ${p.mostPerLane}::int
  ) as due`,
)

/** What the claim that failed asked of gates. */
export interface GatedTrial extends GatedClaim {
  /** Of a remote worker: its tenant, or null for any. */
  tenant?: string | null
  isRemote: boolean
}

/**
 * The jobs that a claim through gates would take, by what `ready` and the gates say, and then the next ones at the same gates: a gate with one
 * slot lets one through, but all that wait there may be bad. Its caller rolls it back.
 */
export const gatedIds = statement<{ id: string }>()(
  'gate.pick',
  (p: GatedTrial) => sql`
  with picked as materialized (
    select waiting.job_id, waiting.queue, waiting.kind, waiting.gate_key
    from holdfast.pick_gated(${p.lanes.map(({ queue }) => queue)}::text[], ${p.lanes.map(({ kind }) => kind)}::text[],
      ${p.lanes.map(({ stageCount }) => stageCount)}::smallint[], ${p.most}::int, ${p.mostBytes}::float8, ${p.tenant ?? null}::text, ${p.isRemote}::boolean,
      ${p.isSuspect}::boolean, ${p.after}::text) as look
    cross join lateral unnest(look.places) as one (place)
    cross join lateral (select * from holdfast.ready where ready.ctid = one.place) as waiting
  )
  select every.id
  from (
    select picked.job_id as id, 1 as turn
    from picked
    union all
    select next.job_id, 2
    from (select distinct queue, kind, gate_key from picked) as gate
    cross join lateral (
      select job.job_id
      from holdfast.ready as job
      where job.queue = gate.queue and job.kind = gate.kind and job.gate_key = gate.gate_key and job.run_at <= now() and ${isSuspect} = ${p.isSuspect}::boolean
      order by job.queue, job.kind, job.gate_key, job.priority, job.run_at
      limit 100
    ) as next
  ) as every
  group by every.id
  order by min(every.turn)
  limit 2000`,
)

/** Reads all that a worker would get. */
const readingAll: ClaimAnswer = {
  ...tellingAll,
  answer: raw(`
  select count(*)::int as count, sum(octet_length(coalesce(input, own_input)::text) + octet_length(outputs))::float8 as bytes
  from told`),
}

/** Claims only these jobs, as a trial: its caller rolls it back. */
export const claimOnly = statement<{ count: number; bytes: number | null }>()(
  'job.claim_only',
  (p: Claim & { ids: readonly string[] }) => claimThose(p, sql`job.job_id = any(${p.ids}::uuid[])`, readingAll),
)

/** The same past their gates. No limit is exceeded by a claim that is rolled back. */
export const claimOnlyGated = statement<{ count: number; bytes: number | null }>()(
  'job.claim_only_gated',
  (p: Pick<Claim, 'sessionId' | 'deadlinesMs'> & { ids: readonly string[] }) =>
    claimOf({
      places: sql`array(select own.ctid from holdfast.ready as own where own.job_id = any(${p.ids}::uuid[]) for update skip locked)`,
      holder: holderOf(p),
      isGated: true,
      how: readingAll,
    }),
)

/** Moves jobs that can't be claimed to a later time, and says why in the log of events. */
export const postponeJobs = statement<{ id: string }>()(
  'job.postpone',
  (p: { ids: readonly string[]; errors: readonly string[]; delayMs: number }) => sql`
  with bad as materialized (
    select *
    from unnest(${p.ids}::uuid[], ${p.errors}::text[]) as bad (id, error)
  ),
  later as (
    update holdfast.ready
    set run_at = now() + ${p.delayMs}::float8 * interval '1 ms'
    from bad
    where ready.ctid = any(array(select own.ctid from holdfast.ready as own where own.job_id = any(${p.ids}::uuid[]) and own.run_at <= now() for update skip locked))
      and ready.job_id = bad.id
    returning ready.job_id as id, ready.kind, ready.tenant, ready.attempt, ready.stage, bad.error
  ),
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage, data)
    select 'job.postponed', ${target('release')}, id, kind, tenant, attempt, stage,
      json_build_object('error', json_build_object('message', error), 'runAt', now() + ${p.delayMs}::float8 * interval '1 ms')
    from later
  )
  select id
  from later`,
)
