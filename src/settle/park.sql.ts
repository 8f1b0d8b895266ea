import type { HeldFence } from '../job/id.ts'
import { textList } from '../postgres/array-text.ts'
import { raw, sql, statement, target } from '../postgres/sql.ts'
import { oneMore, requeueing, takingOut } from '../transitions/leases.sql.ts'
import { type Moved, moved } from './settle.sql.ts'

/** When a parked job is due: never. */
export const neverAt = raw(`timestamptz '9999-01-01 00:00:00+00'`)

/** Parks attempts whose outcomes the database refuses in every form. Their work is done, so they are not run again. */
export const parkJobs = statement<Moved>()(
  'job.park',
  (p: { fences: HeldFence[]; errors: string[]; outcomes: string[] }) => sql`
  with ${takingOut(p.fences, { names: 'error, outcome', lists: sql`${textList(p.errors)}::text[], ${textList(p.outcomes)}::text[]` })},
  back as (${requeueing({ source: 'gone', runAt: neverAt, failures: oneMore('back.failures') })}
  ),
  parked as (
    insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, next_at)
    select id, attempt, session_id, outcome, error::json ->> 'message', now() + interval '5 s'
    from gone
    on conflict (job_id) do update set attempt = excluded.attempt, session_id = excluded.session_id, outcome = excluded.outcome,
      reason = excluded.reason, tries = 0, parked_at = now(), next_at = excluded.next_at
  ),
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select 'job.parked', ${target('retry')}, id, kind, own_tenant, session_id, attempt, stage, json_build_object('error', error::json)
    from gone
  )
  select ${moved(p.fences, 'gone')}
  from gone`,
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

/**
 * Parked outcomes that are due for a retry, or one job's. A process that dies before it retries delays nothing. `isBare`: without the outcomes
 * themselves, so that one that can't be read hides no other. Locked rows are left for later.
 */
export const dueParked = statement<ParkedRow>()(
  'parked_outcome.due',
  (p: { limit: number; only?: string; isBare?: boolean }) => sql`
  select parked.job_id, parked.attempt, parked.session_id, case when not ${p.isBare ?? false}::boolean then parked.outcome end as outcome, parked.reason,
    (extract(epoch from now() - parked.parked_at) * 1000)::float8 as lost_ms
  from holdfast.parked_outcome as parked
  where case when ${p.only ?? null}::uuid is null then parked.next_at <= now() else parked.job_id = ${p.only ?? null}::uuid end
  order by parked.next_at
  limit ${p.limit}
  for update skip locked`,
)

/** Postpones parked outcomes: refused ones twice as long as the last time, locked ones for a moment. */
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

/** Puts a parked attempt back into a lease, to write its outcome. No row means that the job has moved on. */
export const unparkJob = statement<{ lease_id: number }>()(
  'job.unpark',
  (p: { id: string; attempt: number; sessionId: number }) => sql`
  with taken as (
    delete from holdfast.ready
    where ready.job_id = ${p.id}::uuid and ready.attempt = ${p.attempt} and ready.run_at = ${neverAt}
    returning ready.*
  )
  insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, barrier_ids, job_ids, attempts, failures,
    crashes, flawed)
  select ${p.sessionId}::bigint, now() + interval '1 min', now(), job_id, job_id, stage, priority, kind, queue, tenant, '0', case when barrier_id is not null then array[barrier_id] end,
    array[job_id], array[attempt], array[failures], array[crashes], array[is_flawed]
  from taken
  returning id as lease_id`,
)

/** Deletes a parked outcome that was written or is no longer needed. */
export const forgetParked = statement<{ job_id: string }>()(
  'parked_outcome.forget',
  (p: { id: string; attempt: number }) => sql`
  delete from holdfast.parked_outcome as parked
  where parked.job_id = ${p.id}::uuid and parked.attempt = ${p.attempt}
  returning parked.job_id`,
)
