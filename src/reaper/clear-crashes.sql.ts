import { eventOf, raw, sql, statement } from '../postgres/sql.ts'
import { heldPlace } from '../transitions/leases.sql.ts'

/** A crash that was counted against a job although its worker came back. */
export interface UndueRow {
  id: string
  attempt: number
  session_id: number
  lost_ms: number
}

/** How often a job can be cleared: one that makes its processes freeze again and again is not innocent. */
const mostClearings = 10

const clearing = raw(`'job.cleared'`)
/** Losses that were concluded from silence. A hung handler is to blame itself, whatever its worker does. */
const silences = raw(`('lease ran out', 'lock gone')`)

/** Whether a job still counts the crash that an event recorded: it was neither taken back nor reset by a redo since. `told` names the event. */
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

/** The status of a job, if it has not ended; as a lateral subquery. */
const liveJob = (id: string) =>
  raw(`(select * from holdfast.job_status as status where status.id = ${id} and status.finished_at is null limit 1)`)

/** Live jobs that count a crash for the loss of one of these sessions, up to the limit for each session. */
export const findUndue = statement<UndueRow>()(
  'crash.undue',
  (p: { sessions: number[]; limit: number }) => sql`
  select undue.*
  from unnest(${p.sessions}::bigint[]) as returned (id)
  cross join lateral (
    select job.id, told.attempt, told.session_id, (extract(epoch from now() - told.at) * 1000)::float8 as lost_ms
    from holdfast.event as told
    cross join lateral ${liveJob('told.job_id')} as job
    where told.session_id = returned.id and told.type = ${eventOf('revive')}
      and told.data ->> 'rung' in ${silences} and told.data ->> 'cameBack' is null
      and ${isUndue('told')}
    limit ${p.limit}
  ) as undue`,
)

interface Crashes {
  crashes: readonly UndueRow[]
}

/** The given crashes that are still counted, as the CTE `undue`. */
const checking = (p: Crashes) => sql`
  mine as materialized (
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
    cross join lateral ${liveJob('mine.id')} as job
    where ${isUndue('mine')}
  )`

/** Lowers the count of jobs that have a row of their own: those that are queued, or wait for their items. */
const loweringIn = (table: 'ready' | 'waiting') =>
  raw(`
    update holdfast.${table}
    set crashes = ${table}.crashes - 1
    from undue
    where ${table}.job_id = undue.id and ${table}.stage = undue.stage and ${table}.crashes > 0
    returning ${table}.job_id, ${table}.crashes`)

/** Lowers the count of jobs that workers hold, as the CTEs `held`, with one row for each job, and `runs`, with one for each lease. */
const loweringInLeases = sql`
  places as materialized (
    select place.lease_id, place.job_id, place.slot, undue.stage
    from undue
    cross join lateral ${heldPlace('undue.id')} as place
  ),
  -- in the order of their ids, as settles lock them
  locked as materialized (
    select lease.*
    from (select distinct lease_id from places order by lease_id) as named
    cross join lateral (
      select lease.id, lease.stage, lease.done, lease.crashes
      from holdfast.lease
      where lease.id = named.lease_id
      for no key update
    ) as lease
  ),
  held as materialized (
    select locked.id, locked.crashes, places.job_id, places.slot
    from places
    join locked on locked.id = places.lease_id
    where get_bit(locked.done, places.slot) = 0 and locked.stage = places.stage and locked.crashes[places.slot + 1] > 0
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
  )`

/** Takes crashes back. Jobs that have ended in the meantime, and crashes that another leader has taken back, are left alone. */
export const clearCrashes = statement<{ id: string }>()(
  'crash.clear',
  (p: Crashes) => sql`
  with ${checking(p)},
  queued as (${loweringIn('ready')}
  ),
  waits as (${loweringIn('waiting')}
  ),
  ${loweringInLeases},
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
    insert into holdfast.event_log (type, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${clearing}, id, kind, tenant, session_id, attempt, stage, json_build_object('crashes', crashes)
    from cleared
  )
  select id
  from cleared`,
)
