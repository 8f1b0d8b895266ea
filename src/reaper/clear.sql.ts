import { heldPlace } from '../store/lease.sql.ts'
import { eventOf, raw, sql, statement } from '../store/sql.ts'

/** A crash that was counted against a job, although its worker came back. */
export interface UndueRow {
  id: string
  attempt: number
  session_id: number
  lost_ms: number
}

/** So often a job is cleared at the most: what makes its processes freeze again and again is not innocent. */
const mostClearings = 10

const clearing = raw(`'job.cleared'`)
/** Losses that a silence made: a handler that hangs is to blame, whatever its worker does. */
const silences = raw(`('lease ran out', 'lock gone')`)

/** Whether a job still counts the crash that an event told of: it was neither taken back, nor counted anew since. `told` names the event. */
const isUndue = (told: string) => sql`job.crashes > 0 and job.stage = ${raw(told)}.stage
      and not exists (
        select
        from holdfast.event as later
        where later.job_id = job.id and later.seq > ${raw(told)}.seq
          and (later.type = ${eventOf('redo')} or (later.type = ${clearing} and later.attempt = ${raw(told)}.attempt))
      )
      and (
        select count(*)
        from holdfast.event as earlier
        where earlier.job_id = job.id and earlier.type = ${clearing}
      ) < ${raw(String(mostClearings))}`

/** Live jobs that count a crash for the loss of one of these sessions. */
export const findUndue = statement<UndueRow>()(
  'crash.undue',
  (p: { sessions: number[]; limit: number }) => sql`
  select job.id, told.attempt, told.session_id, (extract(epoch from now() - told.at) * 1000)::float8 as lost_ms
  from unnest(${p.sessions}::bigint[]) as returned (id)
  join holdfast.event as told on told.session_id = returned.id and told.type = ${eventOf('revive')}
    and told.data ->> 'rung' in ${silences} and told.data ->> 'cameBack' is null
  cross join lateral (select * from holdfast.job_status as status where status.id = told.job_id and status.finished_at is null limit 1) as job
  where ${isUndue('told')}
  limit ${p.limit}`,
)

/** Takes crashes back. What has ended meanwhile, or was taken back by another leader, is left alone. */
export const clearCrashes = statement<{ id: string }>()(
  'crash.clear',
  (p: { crashes: readonly UndueRow[] }) => sql`
  with mine as materialized (
    select mine.id, mine.attempt, mine.session_id, told.seq, told.stage
    from unnest(
      ${p.crashes.map(({ id }) => id)}::uuid[], ${p.crashes.map(({ attempt }) => attempt)}::int[],
      ${p.crashes.map(({ session_id }) => session_id)}::bigint[]
    ) as mine (id, attempt, session_id)
    join holdfast.event as told on told.job_id = mine.id and told.attempt = mine.attempt and told.type = ${eventOf('revive')}
  ),
  undue as materialized (
    select mine.*, job.kind, job.tenant
    from mine
    cross join lateral (select * from holdfast.job_status as status where status.id = mine.id and status.finished_at is null limit 1) as job
    where ${isUndue('mine')}
  ),
  queued as (
    update holdfast.ready
    set crashes = ready.crashes - 1
    from undue
    where ready.job_id = undue.id and ready.stage = undue.stage and ready.crashes > 0
    returning ready.job_id, ready.crashes
  ),
  waits as (
    update holdfast.waiting
    set crashes = waiting.crashes - 1
    from undue
    where waiting.job_id = undue.id and waiting.stage = undue.stage and waiting.crashes > 0
    returning waiting.job_id, waiting.crashes
  ),
  held as materialized (
    select lease.id, lease.crashes, place.job_id, place.slot
    from undue
    cross join lateral ${heldPlace('undue.id')} as place
    cross join lateral (
      select *
      from holdfast.lease
      where lease.id = place.lease_id and get_bit(lease.done, place.slot) = 0 and lease.stage = undue.stage and lease.crashes[place.slot + 1] > 0
      for no key update
    ) as lease
  ),
  runs as (
    update holdfast.lease
    set crashes = lowered.crashes
    from (
      select held.id, (
        select array_agg((one.crashes - case when one.number - 1 = any(array_agg(held.slot)) then 1 else 0 end)::smallint order by one.number)
        from unnest(min(held.crashes)) with ordinality as one (crashes, number)
      ) as crashes
      from held
      group by held.id
    ) as lowered
    where lease.id = lowered.id
    returning lease.id
  ),
  cleared as (
    select undue.*, less.crashes
    from undue
    join (
      select job_id, crashes from queued
      union all
      select job_id, crashes from waits
      union all
      select held.job_id, held.crashes[held.slot + 1] - 1 from held join runs on runs.id = held.id
    ) as less on less.job_id = undue.id
  ),
  announced as (
    insert into holdfast.event (type, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${clearing}, id, kind, tenant, session_id, attempt, stage, json_build_object('crashes', crashes)
    from cleared
  )
  select id
  from cleared`,
)
