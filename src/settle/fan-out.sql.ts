import type { Fence } from '../job/id.ts'
import { type CancelledRow, cancelling } from '../store/cancelling.sql.ts'
import { tolerated } from '../store/ending.sql.ts'
import { eventOf, legal, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'
import { type Moved, moved } from './settle.sql.ts'

/**
 * Seals and arms barriers and lets their jobs wait. If all items have ended already (or there are none), the join fires at once: the
 * barrier's row is held, so no settle can count past us meanwhile. An error says that the producer gave up after some items: the job is partial at best. The ledger is counted for the total, and so the counters start as it says.
 */
export const fanOutJobs = statement<Moved>()(
  'job.fan_out',
  (p: { fences: Fence[]; sessionId: number; errors: (string | null)[] }) => sql`
  with mine as materialized (
    select *
    from unnest(${p.fences.map(({ id }) => id)}::uuid[], ${p.fences.map(({ attempt }) => attempt)}::int[], ${p.errors}::text[])
      with ordinality as mine (id, attempt, error, place)
  ),
  held as materialized (
    select barrier.*
    from holdfast.barrier
    join mine on mine.id = barrier.job_id
    join holdfast.live_job as job on job.id = barrier.job_id and job.stage = barrier.stage
    order by barrier.id
    for no key update of barrier
  ),
  ready as materialized (
    select held.id, held.job_id, ledger.*, ledger.live + ledger.succeeded + ledger.failed + ledger.cancelled as total, ledger.live = 0 as is_joined
    from held
    cross join lateral holdfast.barrier_ledger(held.id) as ledger
  ),
  moved as (
    update holdfast.live_job as job
    set state = case when ready.is_joined then ${target('join')} else ${target('fanOut')} end, session_id = null, deadline_at = null, run_at = now(),
      is_flawed = job.is_flawed or mine.error is not null
    from mine
    join ready on ready.job_id = mine.id
    where job.id = mine.id and job.attempt = mine.attempt and ${legal('fanOut')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage, ready.id as barrier_id, ready.total, ready.is_joined, mine.place,
      ready.succeeded, ready.failed, ready.cancelled, mine.error
  ),
  sealed as (
    update holdfast.barrier
    set sealed_at = coalesce(barrier.sealed_at, now()), armed_at = now(), total = moved.total, moved_at = now(),
      short = coalesce(moved.error::json, barrier.short), succeeded = moved.succeeded, failed = moved.failed, cancelled = moved.cancelled, joined_at = case when moved.is_joined then now() end,
      stopped_at = case when moved.failed + moved.cancelled > ${tolerated('moved.total')} then now() end
    from moved
    where barrier.id = moved.barrier_id
    returning barrier.id, barrier.stopped_at is not null and barrier.joined_at is null as is_stopped
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select told.type, told.state, id, kind, tenant, ${p.sessionId}::bigint, attempt, stage,
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
 * Cancels what is left of barriers that were stopped, or that are gone, or whose job is. Their joins fire with the last cancelled item.
 * Whoever asks may be late: what was redone meanwhile is left alone.
 */
export const stopBarriers = statement<CancelledRow>()('barrier.stop', (p: { ids: string[]; reason: string }) =>
  cancelling({
    seed: sql`
    select job.id, null::uuid, job.barrier_id
    from holdfast.live_job as job
    where job.barrier_id = any(${p.ids}::uuid[]) and ${legal('cancel')}`,
    barrierIds: p.ids,
    reason: sql`${p.reason}::text`,
  }),
)
