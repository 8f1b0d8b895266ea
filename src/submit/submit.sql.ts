import { smallBytes, tinyBytes } from '../job/stored.ts'
import type { SubmitOutcome } from '../job/unique.ts'
import { mixedList, plainList, sparseList, textList } from '../postgres/array-text.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { type CancelledRow, cancelling } from '../transitions/cancel.sql.ts'
import { gateKeyOf } from '../transitions/gates.sql.ts'
import { heldPlace } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import type { PreparedJob } from './prepare.ts'

/** Whether a job needs a row in `job_payload`: its input is large, or it has meta or a trace. */
const isApart = ({ inputBytes, meta, trace }: PreparedJob) => inputBytes > smallBytes || meta !== null || trace !== null

/** A field of each job, as a list; empty if all have the same value, as in a bulk submit. */
function differing(jobs: PreparedJob[], fieldOf: (job: PreparedJob) => string | number | boolean): string {
  const values = jobs.map(fieldOf)
  return values.every((value) => value === values[0]) ? '{}' : textList(values.map(String))
}

/** The webhooks of the jobs that have one. Few do, so they aren't columns of all jobs. */
function hooks(jobs: PreparedJob[]): Sql {
  const hooked = jobs.flatMap(({ id, webhook }) => (webhook ? [{ ...webhook, id }] : []))
  return sql`unnest(
      ${hooked.map(({ id }) => id)}::uuid[], ${hooked.map(({ url }) => url)}::text[], ${hooked.map(({ origin }) => origin)}::text[],
      ${hooked.map(({ types }) => types.join(','))}::text[], ${hooked.map(({ headers }) => headers)}::text[], ${hooked.map(({ secret }) => secret)}::text[]
    )`
}

/**
 * Jobs that are submitted together come due in steps: every hundred of them one microsecond later. So a claim that
 * knows how far it has come (see worker/floors.ts) need not scan all of them. The insert takes longer than these steps,
 * so they delay nothing. The statements of one large submit run one after another, and start at different times anyway.
 */
const apart = raw(`number / 100 * interval '1 us'`)

/** The jobs as rows. A value that all of them share is passed once, not in a list. */
function rowsOf(jobs: PreparedJob[]): Sql {
  const [first] = jobs
  return sql`
    select id, coalesce(kind, ${first?.kind}::text) as kind, coalesce(queue, ${first?.queue}::text) as queue,
      coalesce(tenant, ${first?.tenant}::text) as tenant, coalesce(priority, ${first?.priority}::smallint) as priority,
      coalesce(crash_budget, ${first?.crashBudget}::smallint) as crash_budget, coalesce(delay_ms, ${first?.delayMs}::float8) as delay_ms,
      coalesce(is_apart, ${first && isApart(first)}::boolean) as is_apart, run_at, number, key, fingerprint, input, meta, trace, limit_key,
      not coalesce(is_apart, ${first && isApart(first)}::boolean) and octet_length(input) <= ${tinyBytes}::int as is_tiny
    from unnest(
      ${plainList(jobs.map(({ id }) => id))}::uuid[], ${differing(jobs, ({ kind }) => kind)}::text[], ${differing(jobs, ({ queue }) => queue)}::text[],
      ${differing(jobs, ({ tenant }) => tenant)}::text[], ${differing(jobs, ({ priority }) => priority)}::smallint[],
      ${differing(jobs, ({ crashBudget }) => crashBudget)}::smallint[], ${differing(jobs, ({ delayMs }) => delayMs)}::float8[],
      ${differing(jobs, isApart)}::boolean[], ${sparseList(jobs.map(({ runAt }) => runAt?.toISOString() ?? null))}::timestamptz[],
      ${sparseList(jobs.map(({ key }) => key))}::text[], ${sparseList(jobs.map(({ fingerprint }) => fingerprint))}::text[],
      ${mixedList(jobs.map(({ input }) => input))}::text[], ${sparseList(jobs.map(({ meta }) => meta))}::text[],
      ${sparseList(jobs.map(({ trace }) => trace))}::text[], ${sparseList(jobs.map(({ limitKey }) => limitKey))}::text[]
    ) with ordinality as given (id, kind, queue, tenant, priority, crash_budget, delay_ms, is_apart, run_at, key, fingerprint, input, meta, trace, limit_key, number)`
}

/**
 * Inserts jobs with their inputs and their `submitted` events. A job whose key is taken is missing from the answer:
 * another caller submitted it first. Keys are inserted in order, so that two batches with the same keys can't deadlock.
 * Wakes a worker only if one asked for it, because every NOTIFY takes a lock that all commits share.
 */
export const submitJobs = statement<{ count: number; ids: string | null }>()(
  'job.submit',
  (p: { jobs: PreparedJob[] }) => sql`
  with given as materialized (${rowsOf(p.jobs)}
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
  ${inserting(p)}
  select count(*)::int as count, case when count(*) < ${p.jobs.length}::int then array_agg(id)::text end as ids,
    case when count(*) > 0 then ${wakeIdle} end as woken
  from submitted`,
)

/** Submits unique jobs, each with a key of its own. One that is not submitted tells who holds its key. */
export const submitUnique = statement<{ id: string; answer: SubmitOutcome; holder: string }>()(
  'job.submit_unique',
  (p: { jobs: PreparedJob[] }) => sql`
  with given as materialized (${rowsOf(p.jobs)}
  ),
  asked as materialized (
    select named.id, taken.answer, taken.holder
    from (
      select given.*, own.unique_key, own.held_while, own.on_taken, own.window_ms
      from given
      join ${uniques(p.jobs)} as own (id, unique_key, held_while, on_taken, window_ms) on own.id = given.id
      order by given.tenant collate "C", given.kind collate "C", own.unique_key collate "C"
    ) as named
    cross join lateral holdfast.take_unique(named.tenant, named.kind, named.unique_key, named.id, named.held_while, named.on_taken, named.window_ms,
      greatest(now(), coalesce(named.run_at, now() + named.delay_ms * interval '1 ms'))) as taken
  ),
  accepted as not materialized (
    select *
    from given
    where id in (select asked.id from asked where asked.answer in ('submitted', 'replaced'))
  ),
  ${inserting(p)}
  select asked.id, asked.answer, asked.holder, ${wakeIdle} as woken
  from asked
  where (select count(*) from submitted) >= 0`,
)

/** How the jobs are unique. */
function uniques(jobs: PreparedJob[]): Sql {
  return sql`unnest(
      ${plainList(jobs.map(({ id }) => id))}::uuid[], ${textList(jobs.map(({ unique }) => unique?.key ?? ''))}::text[],
      ${textList(jobs.map(({ unique }) => unique?.while ?? ''))}::text[], ${textList(jobs.map(({ unique }) => unique?.onConflict ?? ''))}::text[],
      ${sparseList(jobs.map(({ unique }) => unique?.windowMs?.toString() ?? null))}::float8[]
    )`
}

/** Inserts the accepted jobs, with their inputs and webhooks. */
function inserting(p: { jobs: PreparedJob[] }): Sql {
  return sql`payload as (
    insert into holdfast.job_payload (job_id, input, meta, trace)
    select id, input::json, meta::json, trace
    from accepted
    where is_apart
  ),
  hooked as (
    insert into holdfast.job_webhook (job_id, url, origin, types, headers, secret)
    select accepted.id, hook.url, hook.origin, string_to_array(hook.types, ','), hook.headers::json, hook.secret
    from ${hooks(p.jobs)} as hook (job_id, url, origin, types, headers, secret)
    join accepted on accepted.id = hook.job_id
  ),
  queued as (
    insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget, submitted_at, input, gate_key)
    select id, greatest(now(), coalesce(run_at, case when delay_ms > 0 then now() + delay_ms * interval '1 ms' else statement_timestamp() + ${apart} end)), kind, queue, tenant, priority, crash_budget,
      case when is_tiny then now() end, case when is_tiny then input end, ${gateKeyOf('accepted')}
    from accepted
  ),
  submitted as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, limit_key, input)
    select id, kind, queue, tenant, priority, crash_budget, now(), limit_key, case when not is_apart then input::json end
    from accepted
    returning id
  )`
}

/** The jobs that hold these keys. */
export const keyHolders = statement<{ tenant: string; key: string; job_id: string; fingerprint: string }>()(
  'key.holders',
  (p: { keys: { tenant: string; key: string }[] }) => sql`
  select job_key.tenant, job_key.key, job_key.job_id, job_key.fingerprint
  from unnest(${p.keys.map((key) => key.tenant)}::text[], ${p.keys.map((key) => key.key)}::text[]) as given (tenant, key)
  join holdfast.job_key on job_key.tenant = given.tenant and job_key.key = given.key`,
)

/**
 * Cancels jobs in any live state, and with a parent all its items, however deep. A job that is missing from the answer
 * was not cancelled by this call: it has ended, or another statement was moving it at that moment.
 */
export const cancelJobs = statement<CancelledRow>()(
  'job.cancel',
  (p: { ids: string[]; tenant: string | null; reason: string | null; by?: string | null; bulk?: string | null }) =>
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
      bulk: sql`${p.bulk ?? null}::text`,
    }),
)

/** Which of these jobs exist and have not ended. */
export const liveOnes = statement<{ id: string }>()(
  'job.live',
  (p: { ids: string[]; tenant: string | null }) => sql`
  select job.id
  from holdfast.job
  where job.id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant})
    and not exists (select from holdfast.outcome where outcome.job_id = job.id)`,
)
