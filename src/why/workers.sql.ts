import { sessionLockClass, sessionLockOf } from '../postgres/locks.ts'
import { raw, type Sql, sql } from '../postgres/sql.ts'

const isLiving = 'session.ended_at is null and session.lease_until > now()'

/**
 * The workers that handle the kind of the row `job` in its queue: those that live, and when the last of them was heard from. A remote worker
 * runs no parts of a fan-out, and one that belongs to a tenant runs nothing of others.
 */
export const workers: Sql = raw(`case when job.id is not null then (
      select json_build_object('living', count(*) filter (where one.is_living), 'concurrency', coalesce(sum(one.concurrency) filter (where one.is_living), 0),
        'holding', sum(one.holding) filter (where one.is_living), 'lastSeenAt', max(one.heartbeat_at),
        'claiming', count(*) filter (where one.is_living and one.is_claiming), 'busy', coalesce(sum(one.busy) filter (where one.is_living), 0),
        'unresponsive', coalesce(sum(one.unresponsive) filter (where one.is_living), 0),
        'blocked', count(*) filter (where one.is_living and one.is_claiming and one.blocked_ms > 0),
        'blockedMs', coalesce(max(one.blocked_ms) filter (where one.is_living), 0))
      from (
        select session.*, ${isLiving} as is_living, case when session.ended_at is null then (
          select count(*) from (select from holdfast.running as held where held.session_id = session.id limit 1000) as few
        ) end as holding
        from (
          select * from holdfast.session as living where living.ended_at is null
          union all
          (select * from holdfast.session as ended where ended.ended_at is not null order by ended.id desc limit 1000)
        ) as session
        where session.kinds @> array[job.kind]
          and exists (select from unnest(session.kinds, session.queues) as served (kind, queue) where served.kind = job.kind and served.queue = job.queue)
          and (session.remote is null or not job.is_part) and (session.tenant is null or session.tenant = job.tenant)
      ) as one
    ) end`)

/** Handlers of given-up attempts of a job that ignore their abort signal and still run. */
export function unresponsive(id: Sql): Sql {
  return sql`coalesce((
      select json_agg(json_build_object('sessionId', session.id, 'attempt', (handler ->> 'attempt')::int, 'stage', handler ->> 'stage',
        'reason', handler ->> 'reason', 'since', handler ->> 'since', 'host', session.host, 'pid', session.pid) order by session.id)
      from holdfast.session
      cross join lateral json_array_elements(session.unresponsive_handlers) as handler
      where ${raw(isLiving)} and handler ->> 'id' = ${id}::text
    ), '[]')`
}

/** Whether the server knows of the advisory lock of the row `session`. */
export const isLocked: Sql = raw(`exists (
          select
          from pg_locks
          where locktype = 'advisory' and classid = ${sessionLockClass} and objid = ${sessionLockOf('session.id')}::oid and objsubid = 2
            and database = (select oid from pg_database where datname = current_database())
        )`)

/** How the process of the row `session` ended, if a supervisor saw it, and for how long its event loop has been blocked. */
export const vitals: Sql = raw(`, 'exit', session.exit,
        'blockedMs', case when session.id = job.session_id and ${isLiving} then session.blocked_ms end`)
