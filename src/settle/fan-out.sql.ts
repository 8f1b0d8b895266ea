import type { HeldFence } from '../job/id.ts'
import { eventOf, raw, sql, statement, target } from '../postgres/sql.ts'
import { countersOf, endedOf, failedOf, isOverThreshold } from '../transitions/barrier-counters.sql.ts'
import { type CancelledRow, cancelling, mostAtOnce } from '../transitions/cancel.sql.ts'
import { areBitsSet, requeueing, takingOut } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import { type Moved, moved } from './settle.sql.ts'

/**
 * Seals and arms barriers, and moves their jobs to `waiting`. If all items have ended already, or there are none, the
 * join fires at once: the barrier's row is locked, so no settle can change the count in the meantime. An error means
 * that the producer gave up after some items, so the job is partial at best. The counters are set from the ledger.
 */
export const fanOutJobs = statement<Moved>()(
  'job.fan_out',
  (p: { fences: HeldFence[]; errors: (string | null)[] }) => sql`
  with ${takingOut(p.fences, { names: 'error', lists: sql`${p.errors}::text[]` })},
  sealing as materialized (
    select barrier.*
    from holdfast.barrier
    join gone on gone.id = barrier.job_id and gone.stage = barrier.stage
    where ${areBitsSet}
    order by barrier.id
    for no key update of barrier
  ),
  ledger as materialized (
    select sealing.id as barrier_id, sealing.job_id, counted.*, counted.live + ${endedOf('counted')} as total,
      counted.live = 0 as is_joined
    from sealing
    cross join lateral holdfast.barrier_ledger(sealing.id) as counted
  ),
  moved as materialized (
    select gone.id, gone.kind, gone.own_tenant, gone.session_id, gone.attempt, gone.stage, gone.failures, gone.crashes, gone.place, gone.error,
      gone.is_flawed or gone.error is not null as is_flawed, gone.barrier_id as item_of, ledger.barrier_id, ledger.total,
      coalesce(ledger.is_joined, true) as is_joined, ${countersOf('ledger')}
    from gone
    left join ledger on ledger.job_id = gone.id
  ),
  stays as (
    insert into holdfast.waiting (job_id, barrier_id, tenant, attempt, stage, failures, crashes, is_flawed)
    select moved.id, moved.item_of, moved.own_tenant, moved.attempt, moved.stage, moved.failures, moved.crashes, moved.is_flawed
    from moved
    where not moved.is_joined
  ),
  returns as (${requeueing({ source: '(select * from moved where is_joined)', runAt: raw('now()') })}
  ),
  sealed as (
    update holdfast.barrier
    set sealed_at = coalesce(barrier.sealed_at, now()), armed_at = now(), total = moved.total, moved_at = now(),
      short = coalesce(moved.error::json, barrier.short), succeeded = moved.succeeded, failed = moved.failed, cancelled = moved.cancelled,
      joined_at = case when moved.is_joined then now() end,
      stopped_at = case when ${isOverThreshold(failedOf('moved'), raw('moved.total'))} then now() end
    from moved
    where barrier.id = moved.barrier_id
    returning barrier.id, barrier.stopped_at is not null and barrier.joined_at is null as is_stopped
  ),
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select told.type, told.state, id, kind, own_tenant, session_id, attempt, stage,
      case when error is null or told.place = 2 then json_build_object('items', total) else json_build_object('items', total, 'error', error::json) end
    from moved
    cross join lateral (
      select ${eventOf('fanOut')} as type, ${target('fanOut')} as state, 1 as place
      union all
      select ${eventOf('join')}, ${target('join')}, 2 where moved.is_joined
    ) as told
    order by told.place
  )
  select ${moved(p.fences, 'moved')}, (select array_agg(sealed.id) from sealed where sealed.is_stopped) as stopped,
    case when count(*) > 0 then ${wakeIdle} end as woken
  from moved`,
)

/**
 * Cancels the remaining items of barriers that were stopped or are gone, or whose job is gone, up to the limit of one
 * statement. Their joins fire with the last cancelled item. Items that were redone in the meantime are left alone.
 */
export const stopBarriers = statement<CancelledRow>()(
  'barrier.stop',
  ({ ids, reason, limit = mostAtOnce }: { ids: string[]; reason: string; limit?: number }) =>
    cancelling({
      seed: sql`
    select item.job_id, null::uuid, stopped.id, item.lease_id, item.slot
    from unnest(${ids}::uuid[]) as stopped (id)
    cross join lateral holdfast.live_items(stopped.id, ${limit}::int) as item`,
      barrierIds: ids,
      most: sql`${limit}::int`,
      reason: sql`${reason}::text`,
    }),
)
