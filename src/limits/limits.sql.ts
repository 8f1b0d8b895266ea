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

/** Changes what was set at run time, and leaves what the code declares. A limiter without either is removed. */
export const changeLimiter = statement<{ name: string }>()(
  'limiter.change',
  (p: Change) => sql`
  with ${hinting(ofPlace(p))},
  written as (
    insert into holdfast.limiter (scope, name, chosen, changed_by)
    select ${p.scope}::text, ${p.name}::text, ${p.set}::jsonb - ${p.unset}::text[], ${p.by}::text
    on conflict (scope, name) do update
    set chosen = (limiter.chosen || excluded.chosen) - ${p.unset}::text[], tokens = null, refilled_at = null, is_adopted = false,
      changed_txid = pg_current_xact_id(), changed_at = now(), changed_by = excluded.changed_by
    returning limiter.name
  )
  select name, ${wakeIdle} as woken from written`,
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
  )
  select name, ${wakeIdle} as woken from gone`,
)

/** Sets the limit of one key, or removes it. The kind passes through gates from then on, if it did not before. */
export const changeKeyLimit = statement<{ kind: string }>()(
  'key_limit.set',
  (p: { kind: string; key: string; rules: string; by: string | null }) => sql`
  with ${hinting(sql`gate.kind = ${p.kind} and substr(gate.key, strpos(gate.key, ' ') + 1) = ${p.key}`)},
  limiting as (
    insert into holdfast.limiter (scope, name, changed_by)
    values ('kind', ${p.kind}, ${p.by})
    on conflict (scope, name) do nothing
  )
  insert into holdfast.key_limit (kind, key, concurrency, rate, rate_ms, changed_by)
  select ${p.kind}, ${p.key}, (${p.rules}::jsonb ->> 'concurrency')::int, (${p.rules}::jsonb -> 'rate' ->> 'limit')::int,
    (${p.rules}::jsonb -> 'rate' ->> 'perMs')::float8, ${p.by}
  on conflict (kind, key) do update
  set concurrency = excluded.concurrency, rate = excluded.rate, rate_ms = excluded.rate_ms, changed_at = now(), changed_by = excluded.changed_by
  returning kind, ${wakeIdle} as woken`,
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
  set declared = excluded.declared, tokens = null, refilled_at = null, is_adopted = false, changed_txid = pg_current_xact_id(), changed_at = now()
  returning name`,
)

/** Sends jobs that were queued before a limit to its gates, at most so many. Returns how many. */
export const adoptJobs = statement<{ moved: number }>()(
  'limiter.adopt',
  (p: { most: number }) => sql`select holdfast.adopt_jobs(${p.most}::int) as moved`,
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

const held =
  'coalesce(sum(length(lease.done) - bit_count(lease.done)), 0)::int from holdfast.lease where lease.gate_key is not null and'

/** All limits, each with how many jobs hold its slots. */
export const listLimits = statement<LimitRow>()(
  'limiter.list',
  () => sql`
  select limiter.scope, limiter.name, null as key, limiter.declared, limiter.chosen, limiter.changed_at, limiter.changed_by,
    case when limiter.scope = 'kind' then (select ${raw(held)} lease.kind = limiter.name) else (select ${raw(held)} lease.queue = limiter.name) end as running
  from holdfast.limiter
  union all
  select 'kind', one.kind, one.key, '{}', jsonb_build_object('whole', jsonb_strip_nulls(jsonb_build_object('concurrency', one.concurrency,
      'rate', case when one.rate is not null then jsonb_build_object('limit', one.rate, 'perMs', one.rate_ms) end))), one.changed_at, one.changed_by,
    (select ${raw(held)} lease.kind = one.kind and substr(lease.gate_key, strpos(lease.gate_key, ' ') + 1) = one.key)
  from holdfast.key_limit as one
  order by 1, 2, 3 nulls first`,
)
