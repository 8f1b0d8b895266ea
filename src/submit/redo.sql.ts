import { eventOf, legal, raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { countItems, failedOf } from '../transitions/barrier-counters.sql.ts'
import { requeueing } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** What to redo. Without a tenant, jobs of all tenants. */
interface Redo {
  ids: string[]
  tenant: string | null
  isFromStart: boolean
  /** Who asked for it, and why. */
  by?: string | null
  reason?: string | null
  /** The bulk operation that it is part of. */
  bulk?: string | null
}

/** The stage to go back to: the one the job stopped at, or the first with failed items if all stages ran. */
const fromStage = ({ isFromStart }: Redo): Sql => sql`
      case when ${isFromStart}::boolean then 0
        when ended.state = 'partial' and ended.is_flawed then coalesce((
          select min(flawed.stage)
          from holdfast.barrier as flawed
          where flawed.job_id = ended.job_id and (${failedOf('flawed')} > 0 or flawed.short is not null)
        ), ended.stage)
        else ended.stage end::smallint`

/** The jobs to redo: those that were asked for, and with a parent its failed items, however deep. */
const family = (p: Redo): Sql => sql`
    select ended.job_id, ${fromStage(p)}
    from holdfast.outcome as ended
    cross join lateral (select * from holdfast.job where job.id = ended.job_id limit 1) as job
    where ended.job_id = any(${p.ids}::uuid[]) and (${p.tenant}::text is null or job.tenant = ${p.tenant}) and ${legal('redo', 'ended')}
      -- an item whose fan-out is gone follows it soon
      and (job.barrier_id is null or exists (select from holdfast.barrier where barrier.id = job.barrier_id))
    union all
    select ended.job_id, ${fromStage(p)}
    from family
    join holdfast.barrier on barrier.job_id = family.id and barrier.stage = family.from_stage
    join holdfast.outcome as ended on ended.barrier_id = barrier.id
    where ${legal('redo', 'ended')} and not ${p.isFromStart}::boolean`

/** Locks the barriers of these jobs, and those that they are items of, in order. */
const fenced = raw(`
    select barrier.id
    from holdfast.barrier
    where barrier.id = any(array(
      select barrier.id
      from family
      join holdfast.barrier on barrier.job_id = family.id
      union all
      select (select job.barrier_id from holdfast.job where job.id = family.id)
      from family
    ))
    order by barrier.id
    for update`)

/** Takes the jobs out of `outcome`. */
const taken = (p: Redo): Sql => sql`
    delete from holdfast.outcome as ended
    where ended.job_id = any(array(select id from family where (select count(*) from fenced) >= 0)) and ${legal('redo', 'ended')}
    returning ended.*, ${fromStage(p)} as from_stage`

/** The jobs as they are queued again. */
const back = (p: Redo): Sql => sql`
    select job.id, job.kind, job.queue, job.tenant, job.barrier_id, taken.state, taken.attempt, taken.from_stage,
      case when job.is_part then taken.stage else taken.from_stage end as stage, 0 as failures, 0 as crashes,
      taken.is_flawed and taken.state <> 'partial' and not ${p.isFromStart}::boolean as is_flawed
    from taken
    cross join lateral (select * from holdfast.job where job.id = taken.job_id limit 1) as job`

/** Deletes the barriers of later stages, or of all stages. `leaving` has their items removed after a day. */
const forgotten = (p: Redo): Sql => sql`
    delete from holdfast.barrier
    using back
    where barrier.job_id = back.id and (${p.isFromStart}::boolean or barrier.stage > back.from_stage)
    returning barrier.id`

/** How many items each barrier no longer counts as ended. */
const uncounted = sql`
    select barrier_id, ${countItems('state')}
    from back
    where barrier_id is not null
    group by barrier_id`

/** Reopens the barriers that these jobs are items of, and those of the stages that run again. */
const reopened = (p: Redo): Sql => sql`
    update holdfast.barrier
    set succeeded = barrier.succeeded - coalesce(uncounted.succeeded, 0), failed = barrier.failed - coalesce(uncounted.failed, 0),
      cancelled = barrier.cancelled - coalesce(uncounted.cancelled, 0), moved_at = now(), expires_at = null,
      armed_at = case when parent.id is null then barrier.armed_at end, joined_at = case when parent.id is null then barrier.joined_at end,
      stopped_at = case when parent.id is null then barrier.stopped_at end,
      sealed_at = case when parent.id is null or barrier.short is null then barrier.sealed_at end,
      short = case when parent.id is null then barrier.short end
    from touched
    left join uncounted on uncounted.barrier_id = touched.id
    left join holdfast.barrier as before on before.id = touched.id
    left join back as parent on parent.id = before.job_id and parent.from_stage = before.stage
    where barrier.id = touched.id and not (${p.isFromStart}::boolean and parent.id is not null)`

/** Writes the events. */
const announced = (p: Redo): Sql => sql`
    insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage, data)
    select ${eventOf('redo')}, ${target('redo')}, id, kind, tenant, attempt, from_stage,
      case when coalesce(${p.by ?? null}::text, ${p.reason ?? null}, ${p.bulk ?? null}) is not null
        then json_strip_nulls(json_build_object('reason', ${p.reason ?? null}::text, 'by', ${p.by ?? null}::text, 'bulk', ${p.bulk ?? null}::text)) end
    from back`

/**
 * Queues final jobs again, from the stage they stopped at or from the start, and with a parent its failed items; items
 * that succeeded are not run again. Attempt numbers keep counting. A fan-out of a later stage is forgotten, because its
 * items came from an output that is about to change. A producer that gave up runs again, and adds the missing items.
 */
export const redoJobs = statement<{ id: string }>()(
  'job.redo',
  (p: Redo) => sql`
  with recursive family (id, from_stage) as (${family(p)}
  ),
  fenced as materialized (${fenced}
  ),
  taken as (${taken(p)}
  ),
  back as materialized (${back(p)}
  ),
  cleared as (
    delete from holdfast.stage_output as output
    using back
    where output.job_id = back.id and output.stage >= back.from_stage
  ),
  unwaited as (
    delete from holdfast.signal_wait
    using back
    where signal_wait.job_id = back.id and signal_wait.stage >= back.from_stage
    returning signal_wait.job_id, signal_wait.name
  ),
  -- a stage that waits again asks for a signal of its own; signals that came ahead of their stage stay
  unsignalled as (
    delete from holdfast.signal
    using unwaited
    where signal.job_id = unwaited.job_id and signal.name = unwaited.name
  ),
  forgotten as (${forgotten(p)}
  ),
  leaving as (
    insert into holdfast.prune_items (barrier_id, next_at)
    select id, now() + interval '1 day'
    from forgotten
    on conflict do nothing
  ),
  uncounted as (${uncounted}
  ),
  touched as (
    select barrier_id as id from uncounted
    union
    select barrier.id from holdfast.barrier join back on back.id = barrier.job_id and back.from_stage = barrier.stage
  ),
  reopened as (${reopened(p)}
  ),
  announced as (${announced(p)}
  )
  ${requeueing({ source: 'back', runAt: raw('now()') })}
  returning job_id as id, ${wakeIdle} as woken`,
)
