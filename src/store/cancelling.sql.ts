import { ending } from './ending.sql.ts'
import { legal, raw, type Sql, sql, target } from './sql.ts'
import { notify, wakeIdle } from './wake.sql.ts'

/** A row that was cancelled. */
export interface CancelledRow {
  id: string
  /** Items that another statement held at that moment, because it claims or settles them; the same on every row. */
  skipped: string[] | null
}

/** What to cancel. */
export interface Cancelling {
  /**
   * Selects (id, root, stopped) of the live rows to begin with; all items below them follow, however deep. `root`: the job for whose sake, if
   * somebody cancels a job. `stopped`: the barrier for whose sake, if one was stopped.
   */
  seed: Sql
  /** Barriers of which items are cancelled although their own job is not. */
  barrierIds: string[]
  /** Why, as text or null. */
  reason: Sql
  /** Who, as text or null. */
  by?: Sql
}

/**
 * Cancels rows and all items below them in one statement. Locks come in the order in which a settle takes them, barriers before the
 * jobs that wait for them, and no item is waited for: a settle may hold it and wait for its barrier, which is ours. Under those locks a
 * barrier is looked at once more: it is spared if it is not stopped and its job lives, or if it moved since we began and so may be redone.
 * Whoever does not get the root, because it ended while we waited for it, gets none of its items either: no row back means that somebody
 * else has ended the job, and so of several who cancel it one is told that it did.
 */
export function cancelling({ seed, barrierIds, reason, by = raw('null::text') }: Cancelling): Sql {
  return sql`
  with recursive family (id, root, stopped) as (
    ${seed}
    union all
    select item.id, family.root, family.stopped
    from family
    join holdfast.barrier on barrier.job_id = family.id
    join holdfast.live_job as item on item.barrier_id = barrier.id
  ),
  fenced as materialized (
    select barrier.*
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
  spared as materialized (
    select fenced.id
    from fenced
    join holdfast.barrier as seen on seen.id = fenced.id
    where fenced.stopped_at is null
      and (fenced.moved_at <> seen.moved_at or exists (select from holdfast.live_job as parent where parent.id = fenced.job_id))
  ),
  meant as materialized (
    select family.id, family.root
    from family
    where family.stopped is null or family.stopped not in (select id from spared)
  ),
  roots as materialized (
    select job.id
    from holdfast.live_job as job
    where job.id = any(array(select root from meant)) and (select count(*) from fenced) >= 0
    order by job.id
    for update
  ),
  below as materialized (
    select meant.id
    from meant
    where meant.id is distinct from meant.root and (meant.root is null or meant.root in (select id from roots))
  ),
  items as materialized (
    select job.id
    from holdfast.live_job as job
    where job.id = any(array(select id from below))
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
    data: sql`case when coalesce(${reason}, ${by}) is not null then json_strip_nulls(json_build_object('reason', ${reason}, 'by', ${by})) end`,
  })}
  select id, ${raw('(select array_agg(id) from below where id not in (select id from items))')} as skipped,
    case when session_id is not null then ${notify('holdfast_abort', 'session_id::text')} end as told, ${wakeIdle} as woken
  from gone`
}
