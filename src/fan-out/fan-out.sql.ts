import type { HeldFence } from '../job/id.ts'
import { smallBytes } from '../job/stored.ts'
import { legal, raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { countersOf, endedOf, failedOf, isOverThreshold } from '../transitions/barrier-counters.sql.ts'
import { gateKeyOf } from '../transitions/gates.sql.ts'
import { ifTiny } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** A barrier, for its job. */
export interface BarrierRow {
  id: string
  opened_at: Date
  is_sealed: boolean
  is_joined: boolean
  is_stopped: boolean
  is_expired: boolean
  is_over_threshold: boolean
  total: number | null
  succeeded: number
  failed: number
  cancelled: number
  /** Why its producer gave up, if it had added items before. */
  short: { code: string; message: string } | null
}

const columns: Sql = sql`barrier.id, barrier.opened_at, barrier.sealed_at is not null as is_sealed, barrier.joined_at is not null as is_joined,
    barrier.stopped_at is not null as is_stopped, coalesce(barrier.expires_at < now(), false) as is_expired,
    ${isOverThreshold(failedOf('barrier'))} as is_over_threshold, barrier.total, ${countersOf('barrier')}, barrier.short`

const isHeld = ({ leaseId, slot }: HeldFence) =>
  sql`lease.id = ${leaseId}::bigint and get_bit(lease.done, ${slot}::int) = 0`

/** Opens the barrier of a stage, or finds the one that an earlier attempt opened. */
export const openBarrier = statement<BarrierRow>()(
  'barrier.open',
  (p: { fence: HeldFence; id: string; count: number | null; share: number | null; expiresMs: number | null }) => sql`
  insert into holdfast.barrier (id, job_id, stage, tenant, tolerate_count, tolerate_share, expires_at)
  select ${p.id}::uuid, job.id, lease.stage, job.tenant, ${p.count}::int, ${p.share}::float8, now() + ${p.expiresMs}::float8 * interval '1 ms'
  from holdfast.lease, holdfast.job
  where ${isHeld(p.fence)} and job.id = ${p.fence.id}::uuid
  on conflict (job_id, stage) do update
  set tolerate_count = excluded.tolerate_count, tolerate_share = excluded.tolerate_share, moved_at = now(),
    expires_at = case when barrier.armed_at is null then excluded.expires_at else barrier.expires_at end
  returning ${columns}`,
)

/**
 * Compares a barrier that has joined with its ledger before its join runs, so that the join gets the numbers of the ledger. Missing items
 * count as failed. If an item is live, because it was redone or the join was set by hand, the barrier has not joined after all, and has to be
 * armed again. No row: they agree.
 */
export const verifyJoined = statement<BarrierRow>()(
  'barrier.verify',
  (p: { id: string }) => sql`
  with held as materialized (
    select barrier.*
    from holdfast.barrier
    where barrier.id = ${p.id}::uuid and barrier.joined_at is not null
    for no key update
  ),
  ledger as materialized (
    select held.id, counted.live, counted.succeeded, counted.cancelled,
      counted.failed + greatest(0, held.total - counted.live - ${endedOf('counted')}) as failed
    from held
    cross join lateral holdfast.barrier_ledger(held.id) as counted
  )
  update holdfast.barrier
  set succeeded = ledger.succeeded, failed = ledger.failed, cancelled = ledger.cancelled, moved_at = now(),
    joined_at = case when ledger.live = 0 then barrier.joined_at end, armed_at = case when ledger.live = 0 then barrier.armed_at end
  from ledger
  where barrier.id = ledger.id and (ledger.live > 0
    or (${countersOf('barrier')}) is distinct from (${countersOf('ledger')}))
  returning ${columns}`,
)

/** What one batch of items needs. */
export interface ItemBatch {
  fence: HeldFence
  barrierId: string
  kind: string
  queue: string
  priority: number
  crashBudget: number
  stage: number
  isPart: boolean
  ids: string[]
  inputs: string[]
  keys: string[]
  positions: number[]
  /** What the limit of their kind counts by; null if it has no key. Parts have the key of their parent. */
  limitKeys: (string | null)[]
}

/**
 * Adds items, many at a time. An item that an earlier attempt added is left alone, in whichever state it is. Locks the lease of the parent,
 * so a producer that has lost it adds nothing. Items that a concurrent cancel of the parent did not see are cancelled by the reaper. Says
 * whether more items have failed than a count tolerates; a share needs the total, which is not known yet.
 */
export const addItems = statement<{ is_mine: boolean; is_over_threshold: boolean; added: number }>()(
  'barrier.add',
  (p: ItemBatch) => sql`
  with parent as materialized (
    select job.tenant, job.limit_key, payload.trace
    from (select lease.id from holdfast.lease where ${isHeld(p.fence)} for share) as lease
    cross join holdfast.job
    left join holdfast.job_payload as payload on payload.job_id = job.id
    where job.id = ${p.fence.id}::uuid
  ),
  given as materialized (
    select given.*, parent.tenant, parent.trace, parent.limit_key as parent_limit_key
    from unnest(${p.ids}::uuid[], ${p.inputs}::text[], ${p.keys}::text[], ${p.positions}::int[], ${p.limitKeys}::text[]) as given (id, input, key, position, limit_key), parent
  ),
  added as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, stage, barrier_id, position, is_part, item_key, limit_key, input)
    select id, ${p.kind}, ${p.queue}, tenant, ${p.priority}::smallint, ${p.crashBudget}::smallint, now(), ${p.stage}::smallint, ${p.barrierId}::uuid, position, ${p.isPart}::boolean, key, case when ${p.isPart}::boolean then parent_limit_key else limit_key end,
      case when trace is null and octet_length(input) <= ${smallBytes}::int then input::json end
    from given
    on conflict (id) do nothing
    returning id, kind, queue, tenant, priority, crash_budget, is_part, submitted_at, limit_key, input
  ),
  payload as (
    insert into holdfast.job_payload (job_id, input, trace)
    select given.id, given.input::json, given.trace
    from given
    where (given.trace is not null or octet_length(given.input) > ${smallBytes}::int) and given.id in (select id from added)
  ),
  queued as (
    insert into holdfast.ready (job_id, run_at, stage, kind, queue, tenant, priority, crash_budget, barrier_id, is_part, submitted_at, input, gate_key)
    select id, statement_timestamp() + row_number() over () / 100 * interval '1 us', ${p.stage}::smallint, kind, queue, tenant, priority, crash_budget, ${p.barrierId}::uuid, is_part,
      ${ifTiny('submitted_at')}, ${ifTiny('input::text')}, ${gateKeyOf('job')}
    from added as job
  )
  select exists (select from parent) as is_mine, (select count(*) from added)::int as added, ${wakeIdle} as woken,
    exists (
      select
      from holdfast.barrier
      where barrier.id = ${p.barrierId}::uuid and barrier.tolerate_share is null
        and case when ${isOverThreshold(failedOf('barrier'))} then ${isOverThreshold(raw('holdfast.failed_items(barrier.id)'))} end
    ) as is_over_threshold`,
)

/**
 * The results of a barrier's items, in order, after a position. Two items may have the same position, if a producer that ran a second time
 * returned them in another order: they come together, so that no page ends between them. The output is that of the stage at which the item
 * ended.
 */
export const itemResults = statement<ItemResultRow & { bytes: number }>()(
  'barrier.results',
  (p: { barrierId: string; after: number; limit: number }) => sql`
  select item.id, item.position, item.state, item.error, item.item_key as key, coalesce(item.input, payload.input) as item, output.output,
    coalesce(octet_length(coalesce(item.input, payload.input)::text), 0) + coalesce(octet_length(output.output::text), 0) as bytes
  from (
    select job.id, job.position, job.item_key, job.input, ended.state, ended.stage, ended.error
    from holdfast.job
    cross join lateral (select * from holdfast.outcome where outcome.job_id = job.id limit 1) as ended
    where job.barrier_id = ${p.barrierId}::uuid and job.position > ${p.after}::int
    order by job.position
    fetch first (${p.limit}) rows with ties
  ) as item
  left join holdfast.job_payload as payload on payload.job_id = item.id
  left join holdfast.stage_output as output on output.job_id = item.id and output.stage = item.stage
  order by item.position, item.id`,
)

/** The job that has opened a barrier, with its input as text. */
export const parentOf = statement<{ id: string; input: string | null }>()(
  'barrier.parent',
  (p: { barrierId: string }) => sql`
  select barrier.job_id as id, coalesce(job.input, payload.input)::text as input
  from holdfast.barrier
  left join holdfast.job on job.id = barrier.job_id
  left join holdfast.job_payload as payload on payload.job_id = barrier.job_id
  where barrier.id = ${p.barrierId}::uuid`,
)

/** How one item ended. */
export interface ItemResultRow {
  id: string
  position: number
  state: string
  error: { code: string; message: string } | null
  key: string
  item: unknown
  output: unknown
}

/** The progress of a job's fan-outs. */
export const barriersOf = statement<BarrierRow & { stage: number; running: number; queued: number; age_ms: number }>()(
  'barrier.of',
  (p: { jobId: string }) => sql`
  select ${columns}, barrier.stage, live.running, live.queued,
    (extract(epoch from coalesce(barrier.joined_at, now()) - barrier.opened_at) * 1000)::float8 as age_ms
  from holdfast.barrier
  cross join lateral (
    select count(*) filter (where item.session_id is not null)::int as running, count(*) filter (where item.session_id is null)::int as queued
    from holdfast.live_items(barrier.id) as item
  ) as live
  where barrier.job_id = ${p.jobId}::uuid
  order by barrier.stage`,
)

/** One item, live or finished. */
export interface ItemRow {
  id: string
  key: string
  position: number
  stage: number
  state: string
  attempt: number
  error: { code: string; message: string } | null
  since: Date
}

/** A page of the items of a job, by stage and position. */
export const itemsOf = statement<ItemRow>()(
  'barrier.items',
  (p: { jobId: string; state: string | null; stage: number; position: number; id: string; limit: number }) => sql`
  select item.id, item.item_key as key, item.position, barrier.stage, item.state, item.attempt, item.error, item.since
  from holdfast.barrier
  cross join lateral (
    select status.id, status.item_key, status.position, status.state, status.attempt, status.error,
      coalesce(status.finished_at, status.run_at, status.submitted_at) as since
    from holdfast.job_status as status
    where status.barrier_id = barrier.id and (${p.state}::text is null or status.state = ${p.state})
      and (barrier.stage > ${p.stage}::smallint or (status.position, status.id) > (${p.position}::int, ${p.id}::uuid))
    order by status.position, status.id
    limit ${p.limit}
  ) as item
  where barrier.job_id = ${p.jobId}::uuid and barrier.stage >= ${p.stage}::smallint
  order by barrier.stage, item.position, item.id
  limit ${p.limit}`,
)

/** An item that is running, or waits for its own items. */
export interface StragglerRow {
  id: string
  key: string
  position: number
  stage: number
  state: string
  attempt: number
  crashes: number
  session_id: number | null
  deadline_at: Date | null
}

/** Items of a job that are running or waiting, those with the nearest deadlines first. */
export const stragglersOf = statement<StragglerRow>()(
  'barrier.stragglers',
  (p: { jobId: string; limit: number }) => sql`
  select item.job_id as id, job.item_key as key, job.position, item.stage, item.state, item.attempt, item.crashes, item.session_id, item.deadline_at
  from (
    select item.job_id, barrier.stage, item.state, item.attempt, item.crashes, item.session_id, item.deadline_at
    from holdfast.barrier
    cross join lateral holdfast.live_items(barrier.id) as item
    where barrier.job_id = ${p.jobId}::uuid and not ${legal('claim', 'item')}
    order by item.deadline_at
    limit ${p.limit}
  ) as item
  join holdfast.job on job.id = item.job_id
  order by item.deadline_at, job.position`,
)
