import { raw, sql, statement } from '../postgres/sql.ts'
import { isGated } from '../transitions/gates.sql.ts'
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
    select ${p.queue}::text, ${p.kind}::text, ${p.key}::text, 0
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
          where job.queue = step.queue and job.kind = step.kind and job.gate_key = step.key and job.priority = level.priority and job.run_at <= now()
            and ${isNoSuspect}
          order by job.run_at
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
        -- a bucket that was removed would be full again
        and coalesce(idle.refilled_at, '-infinity') < now() - interval '31 days'
        and not exists (
          select from holdfast.ready as job where job.queue = idle.queue and job.kind = idle.kind and job.gate_key = idle.key
        )
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
