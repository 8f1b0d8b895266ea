import type { LimitRules } from '../job/limit.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isGated } from '../transitions/gates.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** What a limit is on: a kind or a queue, and for a kind perhaps every key (`each`) or one key. */
export interface Place {
  scope: 'kind' | 'queue'
  name: string
}

/** A change of a limiter: the parts to set, as JSON, and those to remove. */
export interface Change extends Place {
  set: string
  unset: string[]
  by: string | null
}

/** Leaves hints at gates, so that a change takes effect at once. `which` is a condition on `gate`. */
const hinting = (which: Sql) => sql`hinted as (
    insert into holdfast.gate_hint (queue, kind, key)
    select gate.queue, gate.kind, gate.key
    from holdfast.gate
    where ${which}
    on conflict do nothing
  )`

const ofPlace = (p: Place) =>
  sql`case when ${p.scope} = 'kind' then gate.kind = ${p.name} else gate.queue = ${p.name} end`

/** What a change led to. `is_new`: there may be jobs that don't wait at gates yet, or at others. */
interface Changed {
  is_new: boolean
}

/** Changes what was set at run time, and leaves what the code declares. A limiter without either is removed. */
export const changeLimiter = statement<Changed>()(
  'limiter.change',
  (p: Change) => sql`
  with before as materialized (
    select limiter.tag from holdfast.limiter where limiter.scope = ${p.scope} and limiter.name = ${p.name}
  ),
  ${hinting(ofPlace(p))},
  written as (
    insert into holdfast.limiter (scope, name, chosen, changed_by)
    select ${p.scope}::text, ${p.name}::text, ${p.set}::jsonb - ${p.unset}::text[], ${p.by}::text
    on conflict (scope, name) do update
    set chosen = (limiter.chosen || excluded.chosen) - ${p.unset}::text[], is_adopted = false,
      changed_txid = pg_current_xact_id(), changed_at = now(), changed_by = excluded.changed_by
    returning limiter.tag
  )
  select written.tag is distinct from (select before.tag from before) as is_new, ${wakeIdle} as woken from written`,
)

/** Removes limiters of which nothing is left, with their gates. */
export const dropEmptyLimiters = statement<{ name: string }>()(
  'limiter.drop',
  () => sql`
  with gone as (
    delete from holdfast.limiter
    where limiter.chosen = '{}' and limiter.declared = '{}'
      and not (limiter.scope = 'kind' and exists (select from holdfast.key_limit where key_limit.kind = limiter.name))
    returning limiter.scope, limiter.name
  ),
  emptied as (
    delete from holdfast.limiter_bucket as bucket using gone where bucket.scope = gone.scope and bucket.name = gone.name
  )
  select name, ${wakeIdle} as woken from gone`,
)

/** Sets the limit of one key, or removes it. The kind passes through gates from then on, if it did not before. */
export const changeKeyLimit = statement<Changed>()(
  'key_limit.set',
  (p: { kind: string; key: string; rules: string; by: string | null }) => sql`
  with ${hinting(sql`gate.kind = ${p.kind} and substr(gate.key, strpos(gate.key, ' ') + 1) = ${p.key}`)},
  limiting as (
    insert into holdfast.limiter (scope, name, changed_by)
    values ('kind', ${p.kind}, ${p.by})
    on conflict (scope, name) do nothing
    returning limiter.name
  )
  insert into holdfast.key_limit (kind, key, concurrency, rate, rate_ms, changed_by)
  select ${p.kind}, ${p.key}, (${p.rules}::jsonb ->> 'concurrency')::int, (${p.rules}::jsonb -> 'rate' ->> 'limit')::int,
    (${p.rules}::jsonb -> 'rate' ->> 'perMs')::float8, ${p.by}
  on conflict (kind, key) do update
  set concurrency = excluded.concurrency, rate = excluded.rate, rate_ms = excluded.rate_ms, changed_at = now(), changed_by = excluded.changed_by
  returning exists (select from limiting) as is_new, ${wakeIdle} as woken`,
)

/** Removes the limit of one key. */
export const removeKeyLimit = statement<{ kind: string }>()(
  'key_limit.remove',
  (p: { kind: string; key: string }) => sql`
  with ${hinting(sql`gate.kind = ${p.kind} and substr(gate.key, strpos(gate.key, ' ') + 1) = ${p.key}`)}
  delete from holdfast.key_limit
  where kind = ${p.kind} and key = ${p.key}
  returning kind, ${wakeIdle} as woken`,
)

/**
 * Writes what the code of a worker declares about its kinds. Nothing is written for kinds whose declaration is as it was, so a restart leaves
 * everything alone, and what was set at run time stays.
 */
export const declareLimits = statement<{ name: string }>()(
  'limiter.declare',
  (p: { names: string[]; declared: string[] }) => sql`
  with given as materialized (
    select name, declared::jsonb as declared from unnest(${p.names}::text[], ${p.declared}::text[]) as one (name, declared)
  ),
  ${hinting(raw(`gate.kind in (select given.name from given join holdfast.limiter using (name) where limiter.scope = 'kind' and limiter.declared <> given.declared)`))}
  insert into holdfast.limiter (scope, name, declared)
  select 'kind', given.name, given.declared
  from given
  where coalesce((select limiter.declared from holdfast.limiter where limiter.scope = 'kind' and limiter.name = given.name), '{}') <> given.declared
  order by given.name
  on conflict (scope, name) do update
  set declared = excluded.declared, is_adopted = false, changed_txid = pg_current_xact_id(), changed_at = now()
  returning name`,
)

/** A position in a walk over queued jobs. Null for the beginning of a kind. */
export interface AdoptionCursor {
  queue: string
  kind: string
  priority: number
  at_us: number | null
}

/** One step of such a walk. `isAll`: over all jobs with limits, not only those of limits that were changed a short while ago. */
export interface AdoptionStep extends AdoptionCursor {
  isAll: boolean
  most: number
  /** When the walk began, in milliseconds since 1970 by the clock of the database; null if this is the first step. */
  beganMs: number | null
}

/** What a step did, and the next position. `failed`: so many jobs could not be sent to their gates, and `problem` is why. */
export interface Adopted extends AdoptionCursor {
  moved: number
  failed: number
  problem: string | null
  is_end: boolean
  now_ms: number
}

/** Sends jobs that were queued or claimed before a limit was set to its gates. Returns the next position, and how many it moved. */
export const adoptJobs = statement<Adopted>()(
  'limiter.adopt',
  (p: AdoptionStep) => sql`
  select step.at_queue as queue, step.at_kind as kind, step.at_priority as priority,
    case when step.at_time > '-infinity' then (extract(epoch from step.at_time) * 1000000)::bigint end as at_us,
    step.moved + case when ${p.isAll}::boolean then 0 else holdfast.adopt_leases() end as moved, step.failed, step.problem, step.is_end, (extract(epoch from now()) * 1000)::float8 as now_ms
  from holdfast.adopt_jobs(${p.isAll}::boolean, ${p.most}::int, coalesce(to_timestamp(${p.beganMs}::float8 / 1000), now()), ${p.queue}::text, ${p.kind}::text,
    ${p.priority}::int, coalesce('epoch'::timestamptz + ${p.at_us}::float8 * interval '1 us', '-infinity')) as step`,
)

/** Which of these lanes have gates. */
export const gatedLanes = statement<{ number: number }>()(
  'limiter.lanes',
  (p: { queues: string[]; kinds: string[] }) => sql`
  select lane.number::int
  from unnest(${p.queues}::text[], ${p.kinds}::text[]) with ordinality as lane (queue, kind, number)
  where ${isGated('lane')}`,
)

/** A limiter, or the limit of one key. */
export interface LimitRow extends Place {
  key: string | null
  declared: Parts
  chosen: Parts
  running: number
  changed_at: Date
  changed_by: string | null
}

interface Parts {
  whole?: LimitRules
  each?: LimitRules
  fair?: boolean
  weights?: Record<string, number>
}

/** How many jobs hold slots, by kind, queue and key. Leases are read once, however many limits there are. */
const holding = raw(`holding as materialized (
    select lease.kind, lease.queue, substr(lease.gate_key, strpos(lease.gate_key, ' ') + 1) as key, sum(length(lease.done) - bit_count(lease.done)) as count
    from holdfast.lease
    where lease.gate_key is not null
    group by 1, 2, 3
  ),
  running as materialized (
    select 'kind' as scope, kind as name, null as key, sum(count)::int as count from holding group by kind
    union all
    select 'queue', queue, null, sum(count)::int from holding group by queue
    union all
    select 'kind', kind, key, sum(count)::int from holding group by kind, key
  )`)

/** All limits, each with how many jobs hold its slots. */
export const listLimits = statement<LimitRow>()(
  'limiter.list',
  () => sql`
  with ${holding},
  every as (
    select limiter.scope, limiter.name, null as key, limiter.declared, limiter.chosen, limiter.changed_at, limiter.changed_by
    from holdfast.limiter
    union all
    select 'kind', one.kind, one.key, '{}', jsonb_build_object('whole', jsonb_strip_nulls(jsonb_build_object('concurrency', one.concurrency,
        'rate', case when one.rate is not null then jsonb_build_object('limit', one.rate, 'perMs', one.rate_ms) end))), one.changed_at, one.changed_by
    from holdfast.key_limit as one
  )
  select every.*, coalesce(running.count, 0) as running
  from every
  left join running on running.scope = every.scope and running.name = every.name and coalesce(running.key, '') = coalesce(every.key, '')
    and (running.key is null) = (every.key is null)
  order by 1, 2, 3 nulls first`,
)
