import type { HeldFence } from '../job/id.ts'
import { smallBytes } from '../job/stored.ts'
import { tolerated } from '../store/ending.sql.ts'
import { eventOf, legal, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'

/** A barrier, as its job sees it. */
export interface BarrierRow {
  id: string
  opened_at: Date
  is_sealed: boolean
  is_joined: boolean
  is_stopped: boolean
  is_expired: boolean
  is_spoilt: boolean
  total: number | null
  succeeded: number
  failed: number
  cancelled: number
  /** Why its producer gave up, if it did so after it had given items. */
  short: { code: string; message: string } | null
}

const columns: Sql = sql`barrier.id, barrier.opened_at, barrier.sealed_at is not null as is_sealed, barrier.joined_at is not null as is_joined,
    barrier.stopped_at is not null as is_stopped, coalesce(barrier.expires_at < now(), false) as is_expired,
    barrier.failed + barrier.cancelled > ${tolerated('barrier.total')} as is_spoilt, barrier.total, barrier.succeeded, barrier.failed, barrier.cancelled,
    barrier.short`

const isHeld = ({ leaseId, slot }: HeldFence) => sql`lease.id = ${leaseId}::bigint and get_bit(lease.done, ${slot}::int) = 0`

/** Opens the barrier of a stage, or finds the one that an earlier attempt has opened. */
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
 * Compares a barrier that has joined with its ledger, before its join runs: what the join is told is what the ledger says. Items that are
 * gone count as failed. If one is live, because somebody redid it or set the join by hand, the barrier has not joined after all, and is to be
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
      counted.failed + greatest(0, held.total - counted.live - counted.succeeded - counted.failed - counted.cancelled) as failed
    from held
    cross join lateral holdfast.barrier_ledger(held.id) as counted
  )
  update holdfast.barrier
  set succeeded = ledger.succeeded, failed = ledger.failed, cancelled = ledger.cancelled, moved_at = now(),
    joined_at = case when ledger.live = 0 then barrier.joined_at end, armed_at = case when ledger.live = 0 then barrier.armed_at end
  from ledger
  where barrier.id = ledger.id and (ledger.live > 0
    or (barrier.succeeded, barrier.failed, barrier.cancelled) is distinct from (ledger.succeeded, ledger.failed, ledger.cancelled))
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
}

/**
 * Adds items, many at a time. An item that an earlier attempt has added is left alone, wherever it is by now: the row of its job stays. Holds
 * the lease of the parent, so a producer that lost it adds nothing. What a cancel of the parent that came meanwhile did not see, the
 * reaper cancels. Says whether more have failed already than a count tolerates; a share must wait for the total.
 */
export const addItems = statement<{ is_mine: boolean; is_spoilt: boolean; added: number }>()(
  'barrier.add',
  (p: ItemBatch) => sql`
  with parent as materialized (
    select job.tenant, payload.trace
    from (select lease.id from holdfast.lease where ${isHeld(p.fence)} for share) as lease
    cross join holdfast.job
    left join holdfast.job_payload as payload on payload.job_id = job.id
    where job.id = ${p.fence.id}::uuid
  ),
  given as materialized (
    select given.*, parent.tenant, parent.trace
    from unnest(${p.ids}::uuid[], ${p.inputs}::text[], ${p.keys}::text[], ${p.positions}::int[]) as given (id, input, key, position), parent
  ),
  added as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, barrier_id, position, is_part, item_key, input)
    select id, ${p.kind}, ${p.queue}, tenant, ${p.priority}::smallint, ${p.crashBudget}::smallint, now(), ${p.barrierId}::uuid, position, ${p.isPart}::boolean, key,
      case when trace is null and octet_length(input) <= ${smallBytes}::int then input::json end
    from given
    on conflict (id) do nothing
    returning id, kind, queue, tenant, priority, crash_budget, is_part
  ),
  payload as (
    insert into holdfast.job_payload (job_id, input, trace)
    select given.id, given.input::json, given.trace
    from given
    where (given.trace is not null or octet_length(given.input) > ${smallBytes}::int) and given.id in (select id from added)
  ),
  queued as (
    insert into holdfast.ready (job_id, run_at, stage, kind, queue, tenant, priority, crash_budget, barrier_id, is_part)
    select id, now(), ${p.stage}::smallint, kind, queue, tenant, priority, crash_budget, ${p.barrierId}::uuid, is_part
    from added
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage)
    select ${eventOf('submit')}, ${target('submit')}, id, kind, tenant, 0, ${p.stage}::smallint
    from added
  )
  select exists (select from parent) as is_mine, (select count(*) from added)::int as added, ${wakeIdle} as woken,
    exists (
      select
      from holdfast.barrier
      where barrier.id = ${p.barrierId}::uuid and barrier.tolerate_share is null
        and case when barrier.failed + barrier.cancelled > coalesce(barrier.tolerate_count, 0)
          then holdfast.barrier_flaws(barrier.id) > coalesce(barrier.tolerate_count, 0) end
    ) as is_spoilt`,
)

/**
 * The results of a barrier's items, in order, after that position. Two items may have the same one, if a producer that ran a second time
 * gave them in another order: they come together, so that no page ends between them. The output is that of the stage at which the item
 * ended, if it came to its end.
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

/** How far the fan-outs of a job are. */
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

/** An item that is at work, or waits for items of its own. */
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

/** The items of a job that are at work, those with the nearest deadlines first. */
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
