import { sessionLockClass, sessionLockOf } from '../postgres/locks.ts'
import type { Page } from '../postgres/page.ts'
import { raw, sql, statement } from '../postgres/sql.ts'

/** A session that was ended because its process is gone. */
export interface EndedRow {
  id: number
  rung: string
  lost_ms: number
  host: string
  pid: number
}

/** A worker whose connection broke reconnects within this time. */
export const returnMs = 3_000

/** A time that is further ahead was recorded before someone set the clock back. */
const ahead = `now() + interval '2 s'`
/**
 * Since when sessions have been able to renew their leases: the server is up, and there has been a leader without a gap. Before that,
 * silence proves nothing.
 */
const steadySince = raw(`(
        select max(since.at)
        from (select pg_postmaster_start_time() union all select steady_since from holdfast.leader) as since (at)
        where since.at < ${ahead}
      )`)
/** How long a session may take to come back after an outage. */
const timeToReturn = raw(`greatest(session.lost_after, interval '${returnMs} ms')`)
/** Whether a session has sent a heartbeat since an outage, or has had time to. */
const hadItsChance = sql`coalesce(session.heartbeat_at >= ${steadySince} or ${steadySince} < now() - ${timeToReturn}, true)`
/** Whether this many milliseconds are enough for a session to renew its lease. */
const longEnough = (ms: number) => sql`${ms}::float8 > extract(epoch from ${timeToReturn}) * 1000`

/** A statement that waited this long for the session table was locked out, and so were the heartbeats. */
export const mostHeldUpMs = 1_000
const isReached = raw(`(select clock_timestamp()) < now() + interval '${mostHeldUpMs} ms'`)

const lastSign = raw(`greatest(0, extract(epoch from now() - heartbeat_at) * 1000)::float8 as lost_ms`)

/** How many sessions to end, or which ones only. */
interface Batch {
  limit: number
  only?: readonly number[] | undefined
}

const isMeant = (p: Batch) =>
  sql`(${p.only ?? null}::bigint[] is null or session.id = any(${p.only ?? null}::bigint[]))`

/** How long the database clock has not been set, as far as we know, and how long we have watched it. */
export interface Steadiness {
  steadyMs: number
  watchedMs: number
}

/**
 * Ends sessions that are certainly dead: the lease has run out; or the lock is gone from the very server that held it, and the last heartbeat
 * is too old for a session that is only reconnecting. After a database outage, after its clock was set, or after the session table was locked,
 * every session first gets time to come back. A session with a heartbeat in the future has sent none since the clock was set back. From then
 * on, their heartbeats are refused.
 */
export const endDeadSessions = statement<EndedRow>()(
  'session.end_dead',
  (p: Batch & Steadiness) => sql`
  update holdfast.session
  set ended_at = now(), wants_wake = false,
    ended_by = case when lease_until < now() or heartbeat_at > ${raw(ahead)} then 'lease ran out' else 'lock gone' end
  where id = any(array(
    select session.id
    from holdfast.session
    where session.ended_at is null and ${isMeant(p)}
      and ${hadItsChance} and ${longEnough(p.steadyMs)} and ${isReached}
      and (
        session.lease_until < now()
        or (session.heartbeat_at > ${raw(ahead)} and ${longEnough(p.watchedMs)})
        or (
          session.heartbeat_at < now() - session.lost_after
          and session.locked_on = pg_postmaster_start_time()
          and not exists (
            select
            from pg_locks
            where locktype = 'advisory' and classid = ${sessionLockClass}::int and objid = ${raw(sessionLockOf('session.id'))}::oid and objsubid = 2
              and database = (select oid from pg_database where datname = current_database())
          )
        )
      )
    order by session.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id, ended_by as rung, ${lastSign}, host, pid`,
)

/** Whether the API key that opened a session was revoked or has expired. Always false for an owner that is not a key. */
const hasBadKey = raw(`exists (
      select
      from holdfast.api_key
      where api_key.id = case when session.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then session.owner::uuid end
        and (api_key.revoked_at is not null or api_key.expires_at <= now())
    )`)

/** Ends sessions of remote workers whose API key is no longer valid. */
export const endKeyless = statement<EndedRow>()(
  'session.end_keyless',
  (p: Batch) => sql`
  update holdfast.session
  set ended_at = now(), wants_wake = false, ended_by = 'key revoked'
  where id = any(array(
    select session.id
    from holdfast.session
    where session.ended_at is null and session.owner is not null and ${isMeant(p)} and ${hasBadKey}
    order by session.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id, ended_by as rung, ${lastSign}, host, pid`,
)

/** Sessions that have not ended. */
export const openSessions = statement<{ id: number }>()(
  'session.open_ones',
  (p: Page<number>) => sql`
  select id
  from holdfast.session
  where ended_at is null and id > ${p.after}::bigint
  order by id
  limit ${p.limit}`,
)

/** Sessions whose workers were heard from again, and whose jobs may still count a crash that did not happen. Locked rows are left for later. */
export const returnedSessions = statement<{ id: number }>()(
  'session.returned',
  (p: Page<number>) => sql`
  select id
  from holdfast.session
  where came_back_at is not null and cleared_at is null and id > ${p.after}::bigint
  order by id
  limit ${p.limit}
  for update skip locked`,
)

/** Notes that no job counts a crash of these sessions any more. */
export const closeReturned = statement<{ id: number }>()(
  'session.clear',
  (p: { ids: number[] }) => sql`
  update holdfast.session
  set cleared_at = now()
  where id = any(array(
    select id
    from holdfast.session
    where id = any(${p.ids}::bigint[]) and came_back_at is not null and cleared_at is null
    for update skip locked
  ))
  returning id`,
)

/** Ends the sessions of a process whose supervisor saw it exit, and records how it exited, even on sessions that have already ended. */
export const endChildSessions = statement<EndedRow>()(
  'session.end_child',
  (p: { supervisor: string; pid: number; exit: string | null }) => sql`
  with its as materialized (
    select id, ended_at is null as was_open
    from holdfast.session
    where supervisor = ${p.supervisor} and pid = ${p.pid} and (ended_at is null or exit is null)
    order by id
    for update
  ),
  ended as (
    update holdfast.session
    set ended_at = coalesce(ended_at, now()), wants_wake = false, ended_by = coalesce(ended_by, 'child exited'), exit = ${p.exit}::text
    from its
    where session.id = its.id
    returning session.id, ended_by as rung, ${lastSign}, host, pid, its.was_open
  )
  select id, rung, lost_ms, host, pid
  from ended
  where was_open`,
)

/** Removes sessions that ended long ago and hold nothing. */
export const forgetSessions = statement<{ id: number }>()(
  'session.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.session
  where id = any(array(
    select session.id
    from holdfast.session
    where session.ended_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
      and not exists (select from holdfast.lease where lease.session_id = session.id)
    order by session.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id`,
)

/** Removes old records of refused writes. */
export const forgetRefusals = statement<{ id: number }>()(
  'refusal.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.refusal
  where id = any(array(
    select refusal.id
    from holdfast.refusal
    where refusal.at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by refusal.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id`,
)

/**
 * Kinds with jobs in a queue that no open session serves, with the age of their first due job. Hops along the lane index, so its cost is the
 * number of lanes, not of jobs.
 */
export const strandedKinds = statement<{ queue: string; kind: string; waiting_ms: number }>()(
  'orphan.stranded',
  () => sql`
  with recursive lane (queue, kind) as (
    (select queue, kind from holdfast.ready order by queue, kind limit 1)
    union all
    select following.queue, following.kind
    from lane
    cross join lateral (
      select job.queue, job.kind
      from holdfast.ready as job
      where (job.queue, job.kind) > (lane.queue, lane.kind)
      order by job.queue, job.kind
      limit 1
    ) as following
  ),
  served as materialized (
    select distinct served.kind, served.queue, session.tenant
    from holdfast.session
    cross join unnest(session.kinds, session.queues) as served (kind, queue)
    where session.ended_at is null
  )
  select lane.queue, lane.kind, (extract(epoch from now() - first.run_at) * 1000)::float8 as waiting_ms
  from lane
  cross join lateral (
    select job.run_at, job.tenant
    from holdfast.ready as job
    where job.queue = lane.queue and job.kind = lane.kind
    order by job.queue, job.kind, job.priority, job.run_at
    limit 1
  ) as first
  where first.run_at < now()
    and not exists (
      select
      from served
      where served.kind = lane.kind and served.queue = lane.queue and (served.tenant is null or served.tenant = first.tenant)
    )`,
)
