import type { EventType } from '../job/event-type.ts'
import { leadsTo, type State } from '../job/machine.ts'
import { raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { heldPlace, isAwaiting } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** What is recorded with each change. */
interface Act {
  ids: string[]
  bulk: string
  by: string | null
  reason: string | null
}

/** Jobs that an operation is about to change, as it was asked for. */
interface Claimed {
  ids: string[]
  /** The states that were asked for. */
  states: readonly State[]
  seq: string
}

const [queued] = leadsTo('submit')
const [waiting] = leadsTo('fanOut')
const [running] = leadsTo('claim')

/**
 * Which of these live jobs are still in one of the states that were asked for. Those that are queued are locked, so that no worker claims them
 * before they are cancelled. Running and waiting ones are not: a lease and a barrier come before their jobs.
 */
export const lockLive = statement<{ id: string }>()(
  'bulk.lock_live',
  (p: Claimed) => sql`
  with due as materialized (
    select ready.job_id as id
    from holdfast.ready
    where ready.job_id = any(${p.ids}::uuid[]) and ${queued} = any(${p.states}::text[])
    for update skip locked
  )
  select id from due
  union all
  select waiting.job_id from holdfast.waiting where waiting.job_id = any(${p.ids}::uuid[]) and ${waiting} = any(${p.states}::text[])
  union all
  select wanted.id
  from unnest(${p.ids}::uuid[]) as wanted (id)
  cross join lateral ${heldPlace('wanted.id')} as held
  where ${running} = any(${p.states}::text[])`,
)

/**
 * Locks those of these finished jobs that are still as they were when the operation was asked for. A redo locks barriers before outcomes, so
 * the two can wait for each other; the lock timeout of the page ends that, and the page is repeated in parts.
 */
export const lockEnded = statement<{ id: string }>()(
  'bulk.lock_ended',
  (p: Claimed) => sql`
  select ended.job_id as id
  from holdfast.outcome as ended
  join holdfast.job on job.id = ended.job_id
  where ended.job_id = any(${p.ids}::uuid[]) and ended.state = any(${p.states}::text[]) and ended.seq <= ${p.seq}::bigint
  for update of ended, job skip locked`,
)

const isParked = raw('exists (select from holdfast.parked_outcome as parked where parked.job_id = ready.job_id)')

/** Why a job was left as it was. */
type Left = 'gone' | 'changed' | 'parked' | 'awaiting' | 'locked'

/** Why each of these jobs was left as it was: it is gone, it has changed, it must not be moved, or another transaction holds it. */
export const leftJobs = statement<{ id: string; reason: Left }>()(
  'bulk.left',
  (p: Claimed & { isMove: boolean }) => sql`
  select wanted.id, case
      when job.id is null then 'gone'
      when ended.seq > ${p.seq}::bigint then 'changed'
      when coalesce(ended.state, case when ready.job_id is not null then ${queued} when waiting.job_id is not null then ${waiting} else ${running} end)
        <> all(${p.states}::text[]) then 'changed'
      when ${p.isMove}::boolean and ${isParked} then 'parked'
      when ${p.isMove}::boolean and ${isAwaiting('ready')} then 'awaiting'
      else 'locked' end as reason
  from unnest(${p.ids}::uuid[]) as wanted (id)
  left join lateral (select id from holdfast.job where job.id = wanted.id limit 1) as job on true
  left join lateral (select seq, state from holdfast.outcome where outcome.job_id = wanted.id limit 1) as ended on true
  left join lateral (select job_id, stage from holdfast.ready where ready.job_id = wanted.id limit 1) as ready on true
  left join lateral (select job_id from holdfast.waiting where waiting.job_id = wanted.id limit 1) as waiting on true`,
)

/** The position up to which every group has read the log. */
const readUpTo = raw('(select coalesce(min(cursor.seq), 9223372036854775807) from holdfast.event_cursor as cursor)')

/** Removes finished jobs with everything that belongs to them, except those with unread events, pending deliveries or live items. */
export const deleteJobs = statement<{ id: string }>()(
  'bulk.delete',
  (p: { ids: string[]; keysMs: number }) => sql`
  select unnest(removed.gone) as id
  from holdfast.remove_free_jobs(${p.ids}::uuid[], ${readUpTo}, '-infinity'::timestamptz, ${p.keysMs}::bigint) as removed`,
)

/** Why these jobs, which are locked here, were not removed. */
export const keptJobs = statement<{ id: string; reason: 'unread' | 'undelivered' | 'items' | 'locked' }>()(
  'bulk.kept',
  (p: { ids: string[] }) => sql`
  select ended.job_id as id, case
      when exists (select from holdfast.delivery where delivery.job_id = ended.job_id and delivery.state = 'pending') then 'undelivered'
      when ended.seq > edge.seq or exists (
        select from holdfast.event_log as told where told.job_id = ended.job_id and told.seq > edge.seq
      ) then 'unread'
      when exists (
        select from holdfast.barrier cross join lateral holdfast.live_items(barrier.id) where barrier.job_id = ended.job_id
      ) then 'items'
      else 'locked' end as reason
  from holdfast.outcome as ended
  cross join (select ${readUpTo} as seq) as edge
  where ended.job_id = any(${p.ids}::uuid[])`,
)

/**
 * Changes queued jobs that no other transaction holds, and announces it. Those that already are as asked for are returned as well, and nothing
 * is written about them.
 */
const changing = (p: Act, { type, set, differs, data, more, unless }: Change): Sql => sql`
  with mine as materialized (
    select ready.job_id, ${differs} as differs
    from holdfast.ready
    where ready.job_id = any(${p.ids}::uuid[]) and not (${unless})
    for update skip locked
  ),
  changed as (
    update holdfast.ready
    set ${set}
    from mine
    where ready.job_id = mine.job_id and mine.differs
    returning ready.job_id, ready.kind, ready.tenant, ready.attempt, ready.stage
  ),
  ${more}
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage, data)
    select ${raw(`'${type}'`)}, ${target('submit')}, job_id, kind, tenant, attempt, stage,
      json_strip_nulls(json_build_object(${data}, 'reason', ${p.reason}::text, 'by', ${p.by}::text, 'bulk', ${p.bulk}::text))
    from changed
  )
  select job_id as id, ${wakeIdle} as woken
  from mine`

interface Change {
  type: EventType
  set: Sql
  /** Whether a row of `ready` is not yet as it should be. */
  differs: Sql
  /** The change, for the event. */
  data: Sql
  more: Sql
  /** Which rows of `ready` must not be changed. */
  unless: Sql
}

/**
 * Changes the priority of queued jobs. The row of the job changes with it: a later stage or retry is queued from that row. While the row in
 * `ready` is locked, no worker can claim the job, so nothing reads the other row with the old priority.
 */
export const reprioritize = statement<{ id: string }>()('ready.reprioritize', (p: Act & { priority: number }) =>
  changing(p, {
    type: 'job.reprioritized',
    set: sql`priority = ${p.priority}::smallint`,
    differs: sql`ready.priority <> ${p.priority}::smallint`,
    data: sql`'priority', ${p.priority}::smallint`,
    more: sql`own as (
    update holdfast.job
    set priority = ${p.priority}::smallint
    from changed
    where job.id = changed.job_id
  ),`,
    unless: raw('false'),
  }),
)

/** Changes when queued jobs run. A job that waits for a signal keeps its time, and so does one that has run and whose outcome is parked. */
export const reschedule = statement<{ id: string }>()('ready.reschedule', (p: Act & { runAt: Date }) =>
  changing(p, {
    type: 'job.rescheduled',
    set: sql`run_at = ${p.runAt}::timestamptz`,
    differs: sql`ready.run_at <> ${p.runAt}::timestamptz`,
    data: sql`'runAt', ${p.runAt}::timestamptz`,
    more: raw(''),
    unless: sql`${isParked} or ${isAwaiting('ready')}`,
  }),
)
