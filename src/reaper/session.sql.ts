import { sessionLockClass } from '../store/locks.ts'
import { raw, sql, statement } from '../store/sql.ts'

/** A session that was ended because its process is gone. */
export interface EndedRow {
  id: number
  rung: string
  lost_ms: number
  host: string
  pid: number
}

/** A worker whose connection broke tries again within this time. */
export const returnMs = 3_000

/**
 * Since when sessions have been able to renew their leases: the server runs, and somebody has led without a gap. Before that, silence
 * proves nothing.
 */
const steadySince = raw(`greatest(pg_postmaster_start_time(), (select steady_since from holdfast.leader))`)
/** Whether a session that was last heard of before an outage had the time to come back after it. */
const hadItsChance = sql`(session.heartbeat_at >= ${steadySince}
        or ${steadySince} < now() - greatest(session.lost_after, ${raw(`interval '${returnMs} ms'`)}))`

const lastSign = raw(`(extract(epoch from now() - heartbeat_at) * 1000)::float8 as lost_ms`)

/**
 * Ends sessions that are dead for certain: the lease has run out; or the lock is gone from the very server that held it and the last
 * heartbeat is too old for a session that merely reconnects. After an outage of the database, everybody first has the time to come back.
 * After this, their heartbeats are refused.
 */
export const endDeadSessions = statement<EndedRow>()(
  'session.end_dead',
  (p: { limit: number; only?: number }) => sql`
  update holdfast.session
  set ended_at = now(), wants_wake = false, ended_by = case when lease_until < now() then 'lease ran out' else 'lock gone' end
  where id = any(array(
    select session.id
    from holdfast.session
    where session.ended_at is null and (${p.only ?? null}::bigint is null or session.id = ${p.only ?? null}::bigint)
      and ${hadItsChance}
      and (
        session.lease_until < now()
        or (
          session.heartbeat_at < now() - session.lost_after
          and session.locked_on = pg_postmaster_start_time()
          and not exists (
            select
            from pg_locks
            where locktype = 'advisory' and classid = ${sessionLockClass}::int and objid = session.id::int::oid and objsubid = 2
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

/** Whether the API key that opened a session was revoked or has expired. Owners that are no keys never are. */
const hasBadKey = raw(`exists (
      select
      from holdfast.api_key
      where api_key.id = case when session.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then session.owner::uuid end
        and (api_key.revoked_at is not null or api_key.expires_at <= now())
    )`)

/** Ends sessions of remote workers whose API key is no longer good. */
export const endKeyless = statement<EndedRow>()(
  'session.end_keyless',
  (p: { limit: number }) => sql`
  update holdfast.session
  set ended_at = now(), wants_wake = false, ended_by = 'key revoked'
  where id = any(array(
    select session.id
    from holdfast.session
    where session.ended_at is null and session.owner is not null and ${hasBadKey}
    order by session.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id, ended_by as rung, ${lastSign}, host, pid`,
)

/** Sessions whose workers were heard of again, and whose jobs may still count a crash that was none. */
export const returnedSessions = statement<{ id: number }>()(
  'session.returned',
  (p: { limit: number }) => sql`
  select id
  from holdfast.session
  where came_back_at is not null and cleared_at is null
  order by id
  limit ${p.limit}`,
)

/** Notes that no job counts a crash any more for what these sessions lost. */
export const closeReturned = statement<{ id: number }>()(
  'session.clear',
  (p: { ids: number[] }) => sql`
  update holdfast.session
  set cleared_at = now()
  where id = any(${p.ids}::bigint[]) and came_back_at is not null and cleared_at is null
  returning id`,
)

/** Ends the sessions of a process that its supervisor has seen end, and keeps how it ended, also for those that others have ended meanwhile. */
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

/** Forgets sessions that ended long ago and hold nothing. */
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

/** Forgets refused writes of long ago. */
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
 * Kinds that wait in a queue although no living session knows them, with the age of their first due job. Hops along the lane index:
 * its cost is the number of lanes, not of jobs.
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
