import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import type { StoredFilter } from './filter.ts'
import type { BulkOperation, BulkState } from './operations.ts'

/** What an operation does with a job, as it is stored. */
export interface StoredChange {
  /** Where a redo starts. */
  from?: 'failed' | 'start'
  priority?: number
  /** When rescheduled jobs run: a time, or so long after the operation was asked for. */
  runAt?: string
  delayMs?: number
}

/** A bulk operation, as a row. */
export interface BulkRow {
  id: string
  operation: BulkOperation
  tenant: string | null
  filter: StoredFilter
  change: StoredChange
  asked_at: Date
  asked_by: string | null
  reason: string | null
  rate: number | null
  expected: number
  is_least: boolean
  sample: string[]
  state: BulkState
  done: number
  skipped: number
  holder: string | null
  is_held: boolean
  moved_at: Date
  error: string | null
  ended_at: Date | null
  stopped_by: string | null
  stop_reason: string | null
}

const columns =
  raw(`bulk.id, bulk.operation, bulk.tenant, bulk.filter, bulk.change, bulk.asked_at, bulk.asked_by, bulk.reason, bulk.rate, bulk.expected,
    bulk.is_least, bulk.sample, bulk.state, bulk.done, bulk.skipped, bulk.holder, bulk.state = 'running' and bulk.lease_until > now() as is_held, bulk.moved_at,
    bulk.error, bulk.ended_at, bulk.stopped_by, bulk.stop_reason`)

/** Announces something about the bulk operations in `changed`. Those for all tenants have a tenant that no caller can have. */
export const announced = (type: 'started' | 'stopped' | 'finished', data: Sql): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${raw(`'bulk.${type}'`)}, coalesce(changed.tenant, '*'),
      json_strip_nulls(json_build_object('bulk', changed.id, 'operation', changed.operation, ${data}))
    from changed
  )`

/** A bulk operation to start. */
export interface NewBulk {
  id: string
  operation: BulkOperation
  tenant: string | null
  filter: string
  change: string
  by: string | null
  reason: string | null
  rate: number | null
  expected: number
  isLeast: boolean
  sample: string[]
  /** How many of this tenant, or of all tenants together, may run at once. */
  most: number
}

/** Starts a bulk operation. No row means that there is one with this id already, or that too many are running. */
export const startBulk = statement<{ id: string }>()(
  'bulk.start',
  (p: NewBulk) => sql`
  with changed as (
    insert into holdfast.bulk (id, operation, tenant, filter, change, asked_by, reason, rate, expected, is_least, sample)
    select ${p.id}::uuid, ${p.operation}, ${p.tenant}::text, ${p.filter}::json, ${p.change}::json, ${p.by}::text, ${p.reason}::text, ${p.rate}::int,
      ${p.expected}::int, ${p.isLeast}::boolean, ${p.sample}::uuid[]
    where (select count(*) from holdfast.bulk as other where other.state = 'running' and other.tenant is not distinct from ${p.tenant}::text) < ${p.most}::int
    on conflict (id) do nothing
    returning *
  ),
  ${announced('started', sql`'expected', changed.expected, 'by', changed.asked_by, 'reason', changed.reason`)}
  select changed.id
  from changed`,
)

interface Scope {
  id: string
  tenant: string | null
}

/** One bulk operation. */
export const getBulk = statement<BulkRow>()(
  'bulk.get',
  (p: Scope) => sql`
  select ${columns}
  from holdfast.bulk
  where bulk.id = ${p.id}::uuid and (${p.tenant}::text is null or bulk.tenant = ${p.tenant})`,
)

/** A page of bulk operations, newest first. */
export const listBulk = statement<BulkRow>()(
  'bulk.list',
  (p: { tenant: string | null; state: BulkState | null; before: string | null; limit: number }) => sql`
  select ${columns}
  from holdfast.bulk
  where (${p.tenant}::text is null or bulk.tenant = ${p.tenant}) and (${p.state}::text is null or bulk.state = ${p.state})
    and (${p.before}::uuid is null or bulk.id < ${p.before}::uuid)
  order by bulk.id desc
  limit ${p.limit}`,
)

/** A job that was left as it was. */
export interface SkipRow {
  job_id: string
  reason: string
  error: string | null
  at: Date
}

/** A page of what a bulk operation skipped, newest job first. */
export const listSkipped = statement<SkipRow>()(
  'bulk.list_skipped',
  (p: { id: string; before: string | null; limit: number }) => sql`
  select skip.job_id, skip.reason, skip.error, skip.at
  from holdfast.bulk_skip as skip
  where skip.bulk_id = ${p.id}::uuid and (${p.before}::uuid is null or skip.job_id < ${p.before}::uuid)
  order by skip.job_id desc
  limit ${p.limit}`,
)

/** Stops a bulk operation. It waits for the page that is being changed, and no other page follows. No row if it is not running. */
export const stopBulk = statement<{ id: string }>()(
  'bulk.stop',
  (p: Scope & { by: string | null; reason: string | null }) => sql`
  with changed as (
    update holdfast.bulk
    set state = 'stopped', ended_at = now(), stopped_by = ${p.by}::text, stop_reason = ${p.reason}::text, term = term + 1, lease_until = now()
    where bulk.id = ${p.id}::uuid and bulk.state = 'running' and (${p.tenant}::text is null or bulk.tenant = ${p.tenant})
    returning *
  ),
  ${announced('stopped', sql`'done', changed.done, 'skipped', changed.skipped, 'by', changed.stopped_by, 'reason', changed.stop_reason`)}
  select changed.id
  from changed`,
)

/** How many bulk operations run, counted up to 1,000. */
export const countBulk = statement<{ running: number }>()(
  'bulk.count',
  () => sql`
  select count(*) as running
  from (select from holdfast.bulk where bulk.state = 'running' limit 1000) as one`,
)

/** Removes bulk operations that ended long ago, with what they skipped. */
export const forgetBulk = statement<{ id: string }>()(
  'bulk.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.bulk
  where bulk.id = any(array(
    select old.id
    from holdfast.bulk as old
    where old.ended_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by old.ended_at
    limit ${p.limit}
    for update skip locked
  ))
  returning bulk.id`,
)
