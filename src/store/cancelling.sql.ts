import { ending } from './ending.sql.ts'
import { legal, raw, type Sql, sql, target } from './sql.ts'
import { wakeIdle } from './wake.sql.ts'

/** A row that was cancelled. */
export interface CancelledRow {
  id: string
  /** Items that another statement held at that moment, because it claims or settles them; the same on every row. */
  skipped: string[] | null
}

/** What to cancel. */
export interface Cancelling {
  /** Selects (id, is_root) of the live rows to begin with; all items below them follow, however deep. */
  seed: Sql
  /** Barriers of which items are cancelled although their own job is not. */
  barrierIds: string[]
  /** Why, as text or null. */
  reason: Sql
}

/**
 * Cancels rows and all items below them in one statement. Locks come in the order in which a settle takes them, barriers before the
 * jobs that wait for them, and no item is waited for: a settle may hold it and wait for its barrier, which is ours.
 */
export function cancelling({ seed, barrierIds, reason }: Cancelling): Sql {
  return sql`
  with recursive family (id, is_root) as (
    ${seed}
    union all
    select item.id, false
    from family
    join holdfast.barrier on barrier.job_id = family.id
    join holdfast.live_job as item on item.barrier_id = barrier.id
  ),
  fenced as materialized (
    select barrier.id
    from holdfast.barrier
    where barrier.id = any(array(
      select barrier.id
      from family
      join holdfast.barrier on barrier.job_id = family.id
      union all
      select unnest(${barrierIds}::uuid[])
    ))
    order by barrier.id
    for no key update
  ),
  roots as materialized (
    select job.id
    from holdfast.live_job as job
    where job.id = any(array(select id from family where is_root)) and (select count(*) from fenced) >= 0
    order by job.id
    for update
  ),
  items as materialized (
    select job.id
    from holdfast.live_job as job
    where job.id = any(array(select id from family where not is_root)) and (select count(*) from roots) >= 0
    for update skip locked
  ),
  gone as (
    delete from holdfast.live_job as job
    where job.id = any(array(select id from roots union all select id from items)) and ${legal('cancel')}
    returning job.*
  ),
  ${ending({
    move: 'cancel',
    state: target('cancel'),
    error: sql`json_build_object('code', 'job_cancelled', 'message', coalesce(${reason}, 'The job was cancelled.'))`,
    data: sql`case when ${reason} is not null then json_build_object('reason', ${reason}) end`,
  })}
  select id, ${raw('(select array_agg(id) from family where not is_root and id not in (select id from items))')} as skipped,
    case when session_id is not null then pg_notify('holdfast_abort', session_id::text) end as told, ${wakeIdle} as woken
  from gone`
}
