import type { Fence } from '../job/id.ts'
import { plainList, textList } from '../store/lists.ts'
import { legal, legalOfMine, raw, sql, statement, target } from '../store/sql.ts'
import { type Moved, moved } from './settle.sql.ts'

/** When a parked job falls due by itself: never. */
export const neverAt = raw(`timestamptz '9999-01-01 00:00:00+00'`)

/** Puts attempts aside whose outcomes the database refuses in every form. Counted as failures; their jobs are not run again, for the work is done. */
export const parkJobs = statement<Moved>()(
  'job.park',
  (p: { fences: Fence[]; sessionId: number; errors: string[]; outcomes: string[] }) => sql`
  with mine as materialized (
    select *
    from unnest(${plainList(p.fences.map(({ id }) => id))}::uuid[], ${plainList(p.fences.map(({ attempt }) => attempt))}::int[],
      ${textList(p.errors)}::text[], ${textList(p.outcomes)}::text[]) with ordinality as mine (id, attempt, error, outcome, place)
  ),
  back as (
    update holdfast.live_job as job
    set state = ${target('retry')}, session_id = null, deadline_at = null, failures = job.failures + 1, run_at = ${neverAt}
    from mine
    where ${legalOfMine('retry')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage, mine.place, mine.error, mine.outcome
  ),
  kept as (
    insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, next_at)
    select id, attempt, ${p.sessionId}::bigint, outcome, error::json ->> 'message', now() + interval '5 s'
    from back
    on conflict (job_id) do update set attempt = excluded.attempt, session_id = excluded.session_id, outcome = excluded.outcome,
      reason = excluded.reason, tries = 0, parked_at = now(), next_at = excluded.next_at
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select 'job.parked', ${target('retry')}, id, kind, tenant, ${p.sessionId}::bigint, attempt, stage, json_build_object('error', error::json)
    from back
  )
  select ${moved(p.fences, 'back')}
  from back`,
)

/** An outcome that waits for the database to accept it. */
export interface ParkedRow {
  job_id: string
  attempt: number
  session_id: number
  outcome: string
  reason: string
  lost_ms: number
}

/** Parked outcomes that are due to be tried again, or that of one job. Only looked at: whoever dies before it has tried them costs no time. */
export const dueParked = statement<ParkedRow>()(
  'parked_outcome.due',
  (p: { limit: number; only?: string }) => sql`
  select parked.job_id, parked.attempt, parked.session_id, parked.outcome, parked.reason,
    (extract(epoch from now() - parked.parked_at) * 1000)::float8 as lost_ms
  from holdfast.parked_outcome as parked
  where case when ${p.only ?? null}::uuid is null then parked.next_at <= now() else parked.job_id = ${p.only ?? null}::uuid end
  order by parked.next_at
  limit ${p.limit}`,
)

/** Puts off parked outcomes: those that were refused once more each twice as long as the last time, those that somebody holds for a moment. */
export const postponeParked = statement<{ job_id: string }>()(
  'parked_outcome.postpone',
  (p: { ids: string[]; isHeld: boolean }) => sql`
  update holdfast.parked_outcome as parked
  set tries = case when ${p.isHeld}::boolean then parked.tries else parked.tries + 1 end,
    next_at = now() + case when ${p.isHeld}::boolean then 5 else least(600, 10 * power(2, least(parked.tries, 10))) end * interval '1 s'
  where parked.job_id = any(array(
    select mine.job_id
    from holdfast.parked_outcome as mine
    where mine.job_id = any(${p.ids}::uuid[])
    for update skip locked
  ))
  returning parked.job_id`,
)

/** Puts a parked attempt back as it was, for as long as it takes to write its outcome. No row back: the job was moved on otherwise. */
export const unparkJob = statement<{ id: string }>()(
  'job.unpark',
  (p: { id: string; attempt: number; sessionId: number }) => sql`
  update holdfast.live_job as job
  set state = ${target('claim')}, session_id = ${p.sessionId}::bigint, deadline_at = now() + interval '1 min'
  where job.id = ${p.id}::uuid and job.attempt = ${p.attempt} and job.run_at = ${neverAt} and ${legal('claim')}
  returning job.id`,
)

/** Forgets a parked outcome: it was written, or nobody needs it any more. */
export const forgetParked = statement<{ job_id: string }>()(
  'parked_outcome.forget',
  (p: { id: string; attempt: number }) => sql`
  delete from holdfast.parked_outcome as parked
  where parked.job_id = ${p.id}::uuid and parked.attempt = ${p.attempt}
  returning parked.job_id`,
)
