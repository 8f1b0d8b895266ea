import { type CancelledRow, cancelling } from '../store/cancelling.sql.ts'
import { plainList, sparseList, textList } from '../store/lists.ts'
import { eventOf, legal, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'
import type { PreparedJob } from './prepare.ts'

/** Inputs up to this many bytes travel in the row of their job. */
const smallBytes = 500

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
  submitted as (
    insert into holdfast.live_job (id, kind, queue, tenant, state, priority, crash_budget, submitted_at, run_at, input)
    select id, kind, queue, tenant, ${target('submit')}, priority, crash_budget, now(),
      greatest(now(), coalesce(run_at, now() + delay_ms * interval '1 ms')), case when not is_apart then input end
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

/** Cancels jobs, whatever live state they are in, and with a parent all its items, however deep; the row decides. A job that does not come back was not cancelled by this call. */
export const cancelJobs = statement<CancelledRow>()(
  'job.cancel',
  (p: { ids: string[]; tenant: string | null; reason: string | null; by?: string | null }) =>
    cancelling({
      seed: sql`
    select job.id, job.id, null::uuid
    from holdfast.live_job as job
    where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant}) and ${legal('cancel')}`,
      barrierIds: [],
      reason: sql`${p.reason}::text`,
      by: sql`${p.by ?? null}::text`,
    }),
)

/** The stage to go back to: the one it stopped at, or, if all stages ran but items of an earlier one failed, that one. */
const fromStage = (isFromStart: boolean) => sql`
      case when ${isFromStart}::boolean then 0
        when job.state = 'partial' and job.is_flawed then coalesce((
          select min(flawed.stage)
          from holdfast.barrier as flawed
          where flawed.job_id = job.id and (flawed.failed + flawed.cancelled > 0 or flawed.short is not null)
        ), job.stage)
        else job.stage end::smallint`

/**
 * Sends final jobs round again, from the stage they stopped at or from the start, and with a parent its failed items: those that
 * succeeded are not run again. Their attempts go on counting. A fan-out of a later stage than the one it goes back to is forgotten:
 * its items came from an output that is about to change. A producer that had given up runs again, and adds what is missing.
 */
export const redoJobs = statement<{ id: string }>()(
  'job.redo',
  (p: { ids: string[]; tenant: string | null; isFromStart: boolean; by?: string | null }) => sql`
  with recursive family (id, from_stage) as (
    select job.id, ${fromStage(p.isFromStart)}
    from holdfast.finished_job as job
    where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant}) and ${legal('redo')}
    union all
    select job.id, ${fromStage(p.isFromStart)}
    from family
    join holdfast.barrier on barrier.job_id = family.id and barrier.stage = family.from_stage
    join holdfast.finished_job as job on job.barrier_id = barrier.id
    where ${legal('redo')} and not ${p.isFromStart}::boolean
  ),
  back as (
    delete from holdfast.finished_job as job
    where job.id = any(array(select id from family)) and ${legal('redo')}
    returning job.*, ${fromStage(p.isFromStart)} as from_stage
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
    insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage, data)
    select ${eventOf('redo')}, ${target('redo')}, id, kind, tenant, attempt, from_stage,
      case when ${p.by ?? null}::text is not null then json_build_object('by', ${p.by ?? null}::text) end
    from back
  )
  insert into holdfast.live_job (id, kind, queue, tenant, state, stage, attempt, priority, crash_budget, submitted_at, run_at, barrier_id, position, is_part,
    input, is_flawed)
  select id, kind, queue, tenant, ${target('redo')}, case when is_part then stage else from_stage end, attempt, priority, crash_budget, submitted_at, now(),
    barrier_id, position, is_part, input,
    is_flawed and state <> 'partial' and not ${p.isFromStart}::boolean
  from back
  returning id, ${wakeIdle} as woken`,
)
