import { sql, statement } from '../postgres/sql.ts'
import { endedOf } from '../transitions/barrier-counters.sql.ts'

/** How long finished jobs and their keys are kept. */
export interface KeepRules {
  /** Jobs that succeeded. */
  succeededMs: number
  /** All other finished jobs. */
  othersMs: number
  /** Idempotency keys, counted from the end of their jobs. */
  keysMs: number
  /** The longest that unread events keep a job. */
  capMs: number
}

/** What is due. */
export interface DueRow {
  now_ms: number
  /** How long the first outcome that was not walked yet has been due; null if none is. */
  overdue_ms: number | null
  /** Whether there is anything else to do: keys, items, jobs that could not be removed earlier, cursors of unused retention times. */
  has_chores: boolean
}

/** Whether anything is due to be removed. Reads one row for each retention time, however many jobs there are. */
export const lookForDue = statement<DueRow>()(
  'prune.look',
  (p: KeepRules) => sql`
  with class as materialized (
    select keep_ms
    from holdfast.retention_periods(${p.succeededMs}::bigint, ${p.othersMs}::bigint) as keep_ms
  )
  select (extract(epoch from now()) * 1000)::float8 as now_ms,
    (
      select (extract(epoch from max(now() - head.finished_at - class.keep_ms * interval '1 ms')) * 1000)::float8
      from class
      cross join lateral (
        select ended.finished_at
        from holdfast.outcome as ended
        where ended.seq > coalesce((select prune_cursor.seq from holdfast.prune_cursor where prune_cursor.keep_ms = class.keep_ms), 0)
        order by ended.seq
        limit 1
      ) as head
      where head.finished_at <= now() - class.keep_ms * interval '1 ms' or head.finished_at > now() + interval '1 hour'
    ) as overdue_ms,
    exists (select from holdfast.prune_later where next_at <= now())
      or exists (select from holdfast.prune_items where next_at <= now())
      or exists (select from holdfast.job_key where ended_at <= now() - ${p.keysMs}::bigint * interval '1 ms')
      or exists (select from holdfast.prune_cursor where keep_ms <> all(array(select keep_ms from class))) as has_chores`,
)

/** What a batch did. */
export interface PrunedRow {
  removed: number
  /** How many were removed at the cap, although a group had not read them or a delivery was pending. */
  forced: number
  /** Whether there may be more; null if another process is pruning, and nothing was done. */
  is_full: boolean | null
  /** The groups for which the walk stopped, or which lost events. */
  unread_by: string[] | null
}

/** Removes a batch of what is due, with everything that belongs to it. No outcome up to `safe` can still appear. */
export const pruneBatch = statement<PrunedRow>()(
  'prune.batch',
  (p: KeepRules & { safe: number; most: number }) => sql`
  select removed, forced, is_full, unread_by
  from holdfast.prune(${p.succeededMs}::bigint, ${p.othersMs}::bigint, ${p.keysMs}::bigint, ${p.capMs}::bigint, ${p.safe}::bigint, ${p.most}::int)`,
)

/** The transactions that can keep a prune from running: only one at a time may lock the row of `prune_mark`. */
export const pruneHolders = statement<{ pid: number }>()(
  'prune.holders',
  () => sql`
  select distinct pg_locks.pid
  from pg_locks
  where locktype = 'relation' and relation = 'holdfast.prune_mark'::regclass and granted and pid <> pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())
    and mode in ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  order by pg_locks.pid`,
)

/** What would be removed, by kind and state. Items are counted with their job. Reads at most this many of the oldest outcomes. */
export const previewPrune = statement<{ kind: string; state: string; jobs: number; items: number; walked: number }>()(
  'prune.preview',
  (p: KeepRules & { most: number }) => sql`
  with oldest as materialized (
    select ended.job_id, ended.kind, ended.tenant, ended.state, ended.finished_at, ended.barrier_id
    from holdfast.outcome as ended
    order by ended.seq
    limit ${p.most}
  ),
  due as materialized (
    select oldest.job_id, oldest.kind, oldest.state
    from oldest
    where oldest.barrier_id is null and oldest.finished_at
      <= now() - holdfast.kept_ms(oldest.kind, oldest.tenant, oldest.state, ${p.succeededMs}::bigint, ${p.othersMs}::bigint) * interval '1 ms'
  )
  select due.kind, due.state, count(*) as jobs, coalesce(sum((
      select sum(${endedOf('barrier')})
      from holdfast.barrier
      where barrier.job_id = due.job_id
    )), 0)::bigint as items, (select count(*) from oldest) as walked
  from due
  group by due.kind, due.state
  order by due.kind, due.state`,
)
