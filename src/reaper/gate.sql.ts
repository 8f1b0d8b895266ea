import { raw, sql, statement } from '../postgres/sql.ts'
import { inGateOrder, isAtGate, isGated } from '../transitions/gates.sql.ts'
import { isNoSuspect } from '../transitions/suspect.sql.ts'

/** A position among the keys of gates. */
export interface GateCursor {
  queue: string
  kind: string
  key: string
}

/**
 * Leaves hints at gates that are closed although a due job and a free slot are there. Looks at `limit` keys with waiting jobs after the cursor;
 * returns the last of them, and how many got a hint. The count is made without the gate's lock: a hint too many costs one look.
 */
export const reopenClosed = statement<GateCursor & { looked: number; opened: number }>()(
  'gate.reopen',
  (p: GateCursor & { limit: number }) => sql`
  with recursive step (queue, kind, key, number) as (
    select ${p.queue}::text, ${p.kind}::text, ${p.key}::text collate "C", 0
    union all
    select next.queue, next.kind, next.gate_key, step.number + 1
    from step
    cross join lateral (
      select ready.queue, ready.kind, ready.gate_key
      from holdfast.ready
      where ready.gate_key is not null and (ready.queue, ready.kind, ready.gate_key) > (step.queue, step.kind, step.key)
      order by ready.queue, ready.kind, ready.gate_key
      limit 1
    ) as next
    where step.number < ${p.limit}::int
  ),
  stuck as materialized (
    select step.queue, step.kind, step.key
    from step
    left join holdfast.gate on gate.queue = step.queue and gate.kind = step.kind and gate.key = step.key
    where step.number > 0 and ${isGated('step')} and coalesce(not gate.is_open and gate.next_at = 'infinity', true)
      and not exists (select from holdfast.gate_hint as hint where hint.queue = step.queue and hint.kind = step.kind and hint.key = step.key)
      and exists (
        select
        from generate_series(1, 4) as level (priority)
        cross join lateral (
          select
          from holdfast.ready as job
          where job.queue = step.queue and job.kind = step.kind and ${isNoSuspect}
            and ${isAtGate({ key: 'step.key', priority: 'level.priority', until: 'now()' })}
          order by ${inGateOrder}
          limit 1
        ) as due
      )
      and holdfast.has_room(step.queue, step.kind, step.key)
  ),
  hinted as (
    insert into holdfast.gate_hint (queue, kind, key) select queue, kind, key from stuck on conflict do nothing returning key
  )
  select last.queue, last.kind, last.key, last.number as looked, (select count(*)::int from hinted) as opened
  from (select * from step order by number desc limit 1) as last`,
)

/** How long the bucket of a gate takes to fill. */
const rateMs = (gate: string) =>
  raw(`(
          select coalesce(max(one.rate_ms), max(limiter.key_rate_ms), 0)
          from (select 1) as once
          left join holdfast.limiter on limiter.scope = 'kind' and limiter.name = ${gate}.kind
          left join holdfast.key_limit as one on one.kind = ${gate}.kind and one.key = substr(${gate}.key, strpos(${gate}.key, ' ') + 1)
        )`)

/** From how many hints on the leader collects them. Workers that claim keep them few. */
const manyHints = raw('5000')

/**
 * Opens gates that have hints, and deletes these, as claims do. Without workers that claim, there would be a hint for each transaction that
 * queued a job. Returns where the next look starts; nothing if there are few hints.
 */
export const collectHints = statement<{ after: string }>()(
  'gate.collect',
  (p: { after: string; limit: number }) => sql`
  with recursive lane (queue, kind, number) as (
    (select hint.queue, hint.kind, 1 from holdfast.gate_hint as hint order by hint.queue, hint.kind limit 1)
    union all
    select next.queue, next.kind, lane.number + 1
    from lane
    cross join lateral (
      select hint.queue, hint.kind
      from holdfast.gate_hint as hint
      where (hint.queue, hint.kind) > (lane.queue, lane.kind)
      order by hint.queue, hint.kind
      limit 1
    ) as next
    where lane.number < 100
  )
  select holdfast.open_gates(every.queues, every.kinds, null, ${p.after}::text, ${p.limit}::int) as after
  from (select array_agg(lane.queue) as queues, array_agg(lane.kind) as kinds from lane) as every
  where every.queues is not null and exists (select from holdfast.gate_hint offset ${manyHints})`,
)

/** Removes gates at which nothing has waited for an hour, and hints of kinds without a limit. Locked rows are left for later. */
export const forgetGates = statement<{ count: number }>()(
  'gate.forget',
  (p: { limit: number }) => sql`
  with gone as (
    delete from holdfast.gate
    where gate.ctid = any(array(
      select idle.ctid
      from holdfast.gate as idle
      where idle.used_at < now() - interval '1 h' and coalesce(idle.held_until, '-infinity') < now()
        -- a gate that is added again has a full bucket
        and coalesce(idle.refilled_at, '-infinity') < now() - ${rateMs('idle')} * interval '1 ms'
        and (
          select true from holdfast.ready as job
          where job.queue = idle.queue and job.kind = idle.kind and job.gate_key is not null and (job.gate_key, job.priority) >= (idle.key, 0::smallint)
            and (job.gate_key, job.priority) <= (idle.key, 5::smallint)
          order by ${inGateOrder}
          limit 1
        ) is null
      limit ${p.limit}
      for update skip locked
    ))
    returning 1
  ),
  stale as (
    delete from holdfast.gate_hint as hint
    where hint.ctid = any(array(
      select old.ctid from holdfast.gate_hint as old where not ${isGated('old')} limit ${p.limit} for update skip locked
    ))
    returning 1
  )
  select ${raw('(select count(*) from gone) + (select count(*) from stale)')} as count`,
)
