import { smallBytes } from '../job/stored.ts'
import { type CancelledRow, cancelling } from '../store/cancelling.sql.ts'
import { heldPlace, requeueing } from '../store/lease.sql.ts'
import { plainList, sparseList, textList } from '../store/lists.ts'
import { eventOf, legal, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'
import type { PreparedJob } from './prepare.ts'

/** Whether what a job brings stands in a row of its own: its input is large, or there is more than that. */
const isApart = ({ inputBytes, meta, trace }: PreparedJob) => inputBytes > smallBytes || meta !== null || trace !== null

/** What jobs have each to itself, as a list; empty if all have the same, as in a bulk submit. */
function differing(jobs: PreparedJob[], fieldOf: (job: PreparedJob) => string | number | boolean): string {
  const values = jobs.map(fieldOf)
  return values.every((value) => value === values[0]) ? '{}' : textList(values.map(String))
}

/** The webhooks of those jobs that have one; few do, so they are no columns of the others. */
function hooks(jobs: PreparedJob[]): Sql {
  const hooked = jobs.flatMap(({ id, webhook }) => (webhook ? [{ ...webhook, id }] : []))
  return sql`unnest(
      ${hooked.map(({ id }) => id)}::uuid[], ${hooked.map(({ url }) => url)}::text[], ${hooked.map(({ origin }) => origin)}::text[],
      ${hooked.map(({ types }) => types.join(','))}::text[], ${hooked.map(({ headers }) => headers)}::text[], ${hooked.map(({ secret }) => secret)}::text[]
    )`
}

/**
 * Inserts jobs with their inputs and their `submitted` events, many at a time. A job whose key is taken comes back with
 * no row: somebody else submitted it first. Keys are taken in order, so that two batches with the same keys can't deadlock.
 * Wakes a worker only if one asked for it, because every NOTIFY takes a lock that all commits share.
 */
export const submitJobs = statement<{ count: number; ids: string | null }>()(
  'job.submit',
  (p: { jobs: PreparedJob[] }) => sql`
  with given as materialized (
    select id, coalesce(kind, ${p.jobs[0]?.kind}::text) as kind, coalesce(queue, ${p.jobs[0]?.queue}::text) as queue,
      coalesce(tenant, ${p.jobs[0]?.tenant}::text) as tenant, coalesce(priority, ${p.jobs[0]?.priority}::smallint) as priority,
      coalesce(crash_budget, ${p.jobs[0]?.crashBudget}::smallint) as crash_budget, coalesce(delay_ms, ${p.jobs[0]?.delayMs}::float8) as delay_ms,
      coalesce(is_apart, ${p.jobs[0] && isApart(p.jobs[0])}::boolean) as is_apart, run_at, key, fingerprint, input::json as input, meta, trace
    from unnest(
      ${plainList(p.jobs.map(({ id }) => id))}::uuid[], ${differing(p.jobs, ({ kind }) => kind)}::text[], ${differing(p.jobs, ({ queue }) => queue)}::text[],
      ${differing(p.jobs, ({ tenant }) => tenant)}::text[], ${differing(p.jobs, ({ priority }) => priority)}::smallint[],
      ${differing(p.jobs, ({ crashBudget }) => crashBudget)}::smallint[], ${differing(p.jobs, ({ delayMs }) => delayMs)}::float8[],
      ${differing(p.jobs, isApart)}::boolean[], ${sparseList(p.jobs.map(({ runAt }) => runAt?.toISOString() ?? null))}::timestamptz[],
      ${sparseList(p.jobs.map(({ key }) => key))}::text[], ${sparseList(p.jobs.map(({ fingerprint }) => fingerprint))}::text[],
      ${textList(p.jobs.map(({ input }) => input))}::text[], ${sparseList(p.jobs.map(({ meta }) => meta))}::text[],
      ${sparseList(p.jobs.map(({ trace }) => trace))}::text[]
    ) as given (id, kind, queue, tenant, priority, crash_budget, delay_ms, is_apart, run_at, key, fingerprint, input, meta, trace)
  ),
  keyed as (
    insert into holdfast.job_key (tenant, key, job_id, fingerprint)
    select tenant, key, id, fingerprint
    from given
    where key is not null
    order by tenant collate "C", key collate "C"
    on conflict (tenant, key) do nothing
    returning job_id
  ),
  accepted as not materialized (
    select *
    from given
    where key is null or id in (select job_id from keyed)
  ),
  payload as (
    insert into holdfast.job_payload (job_id, input, meta, trace)
    select id, input, meta::json, trace
    from accepted
    where is_apart
  ),
  hooked as (
    insert into holdfast.job_webhook (job_id, url, origin, types, headers, secret)
    select accepted.id, hook.url, hook.origin, string_to_array(hook.types, ','), hook.headers::json, hook.secret
    from ${hooks(p.jobs)} as hook (job_id, url, origin, types, headers, secret)
    join accepted on accepted.id = hook.job_id
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage)
    select ${eventOf('submit')}, ${target('submit')}, id, kind, tenant, 0, 0
    from accepted
  ),
  queued as (
    insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget)
    select id, greatest(now(), coalesce(run_at, now() + delay_ms * interval '1 ms')), kind, queue, tenant, priority, crash_budget
    from accepted
  ),
  submitted as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, input)
    select id, kind, queue, tenant, priority, crash_budget, now(), case when not is_apart then input end
    from accepted
    returning id
  )
  select count(*)::int as count, case when count(*) < ${p.jobs.length}::int then array_agg(id)::text end as ids,
    case when count(*) > 0 then ${wakeIdle} end as woken
  from submitted`,
)

/** Who took these keys, and with what. */
export const keyHolders = statement<{ tenant: string; key: string; job_id: string; fingerprint: string }>()(
  'key.holders',
  (p: { keys: { tenant: string; key: string }[] }) => sql`
  select job_key.tenant, job_key.key, job_key.job_id, job_key.fingerprint
  from unnest(${p.keys.map((key) => key.tenant)}::text[], ${p.keys.map((key) => key.key)}::text[]) as given (tenant, key)
  join holdfast.job_key on job_key.tenant = given.tenant and job_key.key = given.key`,
)

/**
 * Cancels jobs, whatever live state they are in, and with a parent all its items, however deep. A job that does not come back was not
 * cancelled by this call: it has ended, or somebody was moving it at that moment.
 */
export const cancelJobs = statement<CancelledRow>()(
  'job.cancel',
  (p: { ids: string[]; tenant: string | null; reason: string | null; by?: string | null }) =>
    cancelling({
      seed: sql`
    select job.id, job.id, null::uuid, held.lease_id, held.slot
    from holdfast.job
    left join lateral ${heldPlace('job.id')} as held on true
    where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant})
      and not exists (select from holdfast.outcome where outcome.job_id = job.id)`,
      barrierIds: [],
      reason: sql`${p.reason}::text`,
      by: sql`${p.by ?? null}::text`,
    }),
)

/** Which of these jobs are there and have not ended. */
export const liveOnes = statement<{ id: string }>()(
  'job.live',
  (p: { ids: string[]; tenant: string | null }) => sql`
  select job.id
  from holdfast.job
  where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant})
    and not exists (select from holdfast.outcome where outcome.job_id = job.id)`,
)

/** The stage to go back to: the one it stopped at, or, if all stages ran but items of an earlier one failed, that one. */
const fromStage = (isFromStart: boolean) => sql`
      case when ${isFromStart}::boolean then 0
        when ended.state = 'partial' and ended.is_flawed then coalesce((
          select min(flawed.stage)
          from holdfast.barrier as flawed
          where flawed.job_id = ended.job_id and (flawed.failed + flawed.cancelled > 0 or flawed.short is not null)
        ), ended.stage)
        else ended.stage end::smallint`

/**
 * Sends final jobs round again, from the stage they stopped at or from the start, and with a parent its failed items: those that
 * succeeded are not run again. Their attempts go on counting. A fan-out of a later stage than the one it goes back to is forgotten:
 * its items came from an output that is about to change. A producer that had given up runs again, and adds what is missing.
 */
export const redoJobs = statement<{ id: string }>()(
  'job.redo',
  (p: { ids: string[]; tenant: string | null; isFromStart: boolean }) => sql`
  with recursive family (id, from_stage) as (
    select ended.job_id, ${fromStage(p.isFromStart)}
    from holdfast.outcome as ended
    join holdfast.job on job.id = ended.job_id
    where ended.job_id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant}) and ${legal('redo', 'ended')}
    union all
    select ended.job_id, ${fromStage(p.isFromStart)}
    from family
    join holdfast.barrier on barrier.job_id = family.id and barrier.stage = family.from_stage
    join holdfast.outcome as ended on ended.barrier_id = barrier.id
    where ${legal('redo', 'ended')} and not ${p.isFromStart}::boolean
  ),
  taken as (
    delete from holdfast.outcome as ended
    where ended.job_id = any(array(select id from family)) and ${legal('redo', 'ended')}
    returning ended.*, ${fromStage(p.isFromStart)} as from_stage
  ),
  back as materialized (
    select job.id, job.kind, job.queue, job.tenant, job.barrier_id, taken.state, taken.attempt, taken.from_stage,
      case when job.is_part then taken.stage else taken.from_stage end as stage, 0 as failures, 0 as crashes,
      taken.is_flawed and taken.state <> 'partial' and not ${p.isFromStart}::boolean as is_flawed
    from taken
    join holdfast.job on job.id = taken.job_id
  ),
  cleared as (
    delete from holdfast.stage_output as output
    using back
    where output.job_id = back.id and output.stage >= back.from_stage
  ),
  forgotten as (
    delete from holdfast.barrier
    using back
    where barrier.job_id = back.id and (${p.isFromStart}::boolean or barrier.stage > back.from_stage)
  ),
  uncounted as (
    select barrier_id, count(*) filter (where state = 'partial') as succeeded, count(*) filter (where state = 'failed') as failed,
      count(*) filter (where state = 'cancelled') as cancelled
    from back
    where barrier_id is not null
    group by barrier_id
  ),
  touched as (
    select barrier_id as id from uncounted
    union
    select barrier.id from holdfast.barrier join back on back.id = barrier.job_id and back.from_stage = barrier.stage
  ),
  reopened as (
    update holdfast.barrier
    set succeeded = barrier.succeeded - coalesce(uncounted.succeeded, 0), failed = barrier.failed - coalesce(uncounted.failed, 0),
      cancelled = barrier.cancelled - coalesce(uncounted.cancelled, 0), moved_at = now(), expires_at = null,
      armed_at = case when parent.id is null then barrier.armed_at end, joined_at = case when parent.id is null then barrier.joined_at end,
      stopped_at = case when parent.id is null then barrier.stopped_at end,
      sealed_at = case when parent.id is null or barrier.short is null then barrier.sealed_at end,
      short = case when parent.id is null then barrier.short end
    from touched
    left join uncounted on uncounted.barrier_id = touched.id
    left join holdfast.barrier as before on before.id = touched.id
    left join back as parent on parent.id = before.job_id and parent.from_stage = before.stage
    where barrier.id = touched.id and not (${p.isFromStart}::boolean and parent.id is not null)
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage)
    select ${eventOf('redo')}, ${target('redo')}, id, kind, tenant, attempt, from_stage
    from back
  )
  ${requeueing({ source: 'back', runAt: raw('now()') })}
  returning job_id as id, ${wakeIdle} as woken`,
)
