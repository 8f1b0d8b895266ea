import { sql, statement } from '../postgres/sql.ts'
import { announced, type BulkRow } from './bulk.sql.ts'
import type { BulkState } from './operations.ts'

/** A bulk operation that this process carries on. */
export interface HeldBulk
  extends Pick<
    BulkRow,
    'id' | 'operation' | 'tenant' | 'filter' | 'change' | 'asked_at' | 'asked_by' | 'reason' | 'rate'
  > {
  seq: string
  pass: number
  cursor: string | null
  /** The fence: it changes whenever another process takes the operation over, and when it is stopped. */
  term: number
}

/**
 * Takes the bulk operation that has waited longest, if no live process carries it on. One that is held for much longer than a process holds
 * it was held before the clock was set back. Whoever has it then loses its term.
 */
export const claimBulk = statement<HeldBulk>()(
  'bulk.claim',
  (p: { holder: string; leaseMs: number }) => sql`
  update holdfast.bulk
  set term = term + 1, holder = ${p.holder}::text, lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms'
  where bulk.id = any(array(
    select due.id
    from holdfast.bulk as due
    where due.state = 'running' and (due.next_at <= now() or due.next_at > now() + interval '1 minute')
      and (due.lease_until <= now() or due.lease_until > now() + 10 * ${p.leaseMs}::float8 * interval '1 ms')
    order by due.next_at
    limit 1
    for update skip locked
  ))
  returning bulk.id, bulk.operation, bulk.tenant, bulk.filter, bulk.change, bulk.asked_at, bulk.asked_by, bulk.reason, bulk.rate, bulk.seq::text as seq, bulk.pass,
    bulk.cursor, bulk.term`,
)

interface Fenced {
  id: string
  term: number
}

/** Locks the row for a page. No row means that it was stopped, or that another process carries it on. */
export const holdBulk = statement<{ id: string }>()(
  'bulk.hold',
  (p: Fenced) => sql`
  select bulk.id
  from holdfast.bulk
  where bulk.id = ${p.id}::uuid and bulk.term = ${p.term}::bigint and bulk.state = 'running'
  for update`,
)

/** The progress of a page. */
export interface Progress extends Fenced {
  cursor: string
  leaseMs: number
  done: number
  /** Jobs that an earlier pass skipped and this one has changed. */
  noLonger: string[]
  skipped: { ids: string[]; reasons: string[]; errors: (string | null)[] }
  mostListed: number
}

/** Records the progress of a page, in its transaction. */
export const noteProgress = statement<{ id: string }>()(
  'bulk.note',
  (p: Progress) => sql`
  with unlisted as (
    delete from holdfast.bulk_skip as skip
    where skip.bulk_id = ${p.id}::uuid and skip.job_id = any(${p.noLonger}::uuid[])
    returning skip.job_id
  ),
  known as materialized (
    select skip.job_id from holdfast.bulk_skip as skip where skip.bulk_id = ${p.id}::uuid and skip.job_id = any(${p.skipped.ids}::uuid[])
  ),
  listed as (
    insert into holdfast.bulk_skip (bulk_id, job_id, reason, error)
    select ${p.id}::uuid, left_out.id, left_out.reason, left_out.error
    from unnest(${p.skipped.ids}::uuid[], ${p.skipped.reasons}::text[], ${p.skipped.errors}::text[]) as left_out (id, reason, error)
    where left_out.id in (select job_id from known) or (select bulk.skipped from holdfast.bulk where bulk.id = ${p.id}::uuid) < ${p.mostListed}::int
    on conflict (bulk_id, job_id) do update set reason = excluded.reason, error = excluded.error, at = now()
  )
  update holdfast.bulk
  set cursor = ${p.cursor}::uuid, done = bulk.done + ${p.done}::int,
    skipped = bulk.skipped + ${p.skipped.ids.length}::int - (select count(*) from known) - (select count(*) from unlisted),
    lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms', moved_at = now(), error = null
  where bulk.id = ${p.id}::uuid and bulk.term = ${p.term}::bigint and bulk.state = 'running'
  returning bulk.id`,
)

/** Jobs that an earlier pass found locked, below the cursor. */
export const lockedOnes = statement<{ id: string }>()(
  'bulk.locked',
  (p: { id: string; below: string; limit: number }) => sql`
  select skip.job_id as id
  from holdfast.bulk_skip as skip
  where skip.bulk_id = ${p.id}::uuid and skip.reason = 'locked' and skip.job_id < ${p.below}::uuid
  order by skip.job_id desc
  limit ${p.limit}`,
)

/** Ends a pass: goes back to the jobs that were locked, some time later, or finishes the operation. */
export const endPass = statement<{ state: BulkState }>()(
  'bulk.end_pass',
  (p: Fenced & { passes: number; pauseMs: number }) => sql`
  with seen as materialized (
    select bulk.pass < ${p.passes}::int and exists (
      select from holdfast.bulk_skip as skip where skip.bulk_id = bulk.id and skip.reason = 'locked'
    ) as goes_on
    from holdfast.bulk
    where bulk.id = ${p.id}::uuid
  ),
  ended as (
    update holdfast.bulk
    set pass = case when seen.goes_on then bulk.pass + 1 else bulk.pass end, cursor = null, lease_until = now(), moved_at = now(),
      next_at = case when seen.goes_on then now() + ${p.pauseMs}::float8 * interval '1 ms' else bulk.next_at end,
      state = case when seen.goes_on then bulk.state else 'finished' end, ended_at = case when not seen.goes_on then now() end
    from seen
    where bulk.id = ${p.id}::uuid and bulk.term = ${p.term}::bigint and bulk.state = 'running'
    returning bulk.*
  ),
  changed as (select * from ended where state = 'finished'),
  ${announced('finished', sql`'done', changed.done, 'skipped', changed.skipped, 'by', changed.asked_by, 'reason', changed.reason`)}
  select state
  from ended`,
)

/** Gives a bulk operation back, so that any process may carry it on, at once or after a pause. */
export const releaseBulk = statement<{ id: string }>()(
  'bulk.release',
  (p: Fenced & { pauseMs: number; error: string | null }) => sql`
  update holdfast.bulk
  set lease_until = now(), next_at = now() + ${p.pauseMs}::float8 * interval '1 ms', error = coalesce(${p.error}::text, bulk.error)
  where bulk.id = ${p.id}::uuid and bulk.term = ${p.term}::bigint and bulk.state = 'running'
  returning bulk.id`,
)
