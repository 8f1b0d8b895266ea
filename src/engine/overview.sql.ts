import { sessionLockClass } from '../store/locks.ts'
import { raw, type Sql, sql, statement } from '../store/sql.ts'

/** A queue, with what is in it. */
export interface QueueRow {
  name: string
  paused_at: Date | null
  paused_by: string | null
  pause_reason: string | null
  queued: number
  scheduled: number
  running: number
  waiting: number
  oldest_due_ms: number | null
  workers: number
  is_capped: boolean
}

interface Counting {
  tenant: string | null
  /** How many rows are looked at for each queue and state. */
  most: number
}

/** Whether a session serves whoever asks: the remote worker of a tenant is nobody else's, nor are its queues. */
const servesTenant = (p: Counting) =>
  sql`(${p.tenant}::text is null or session.tenant is null or session.tenant = ${p.tenant})`

/** How many rows of a walk are the tenant's, and whether the walk ended before the rows did. */
const counted = (p: Counting, walk: Sql) => sql`
    select count(*) filter (where ${p.tenant}::text is null or walked.tenant = ${p.tenant}) as own, count(*) >= ${p.most}::int as is_capped,
      min(walked.run_at) filter (where ${p.tenant}::text is null or walked.tenant = ${p.tenant}) as first_at
    from (${walk} limit ${p.most}) as walked`

/** The queued jobs of a queue on one side of now, lane after lane: each walk is a range of the index, and stops at the limit. */
const queuedRows = (p: Counting, side: string) => sql`
      select job.tenant, job.run_at
      from lane
      cross join lateral (
        select job.tenant, job.run_at
        from holdfast.ready as job
        where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority and job.run_at ${raw(side)} now()
        order by job.run_at
        limit ${p.most}
      ) as job
      where lane.queue = name.queue`

/**
 * Every queue that somebody knows of, and what is in it. Hops along the lane index and the holding sessions, so that its cost is the
 * number of lanes and sessions, and of at most so many rows in each.
 */
export const listQueues = statement<QueueRow>()(
  'queue.list',
  (p: Counting) => sql`
  with recursive lane (queue, kind, priority) as (
    (select job.queue, job.kind, job.priority from holdfast.ready as job order by job.queue, job.kind, job.priority limit 1)
    union all
    select following.queue, following.kind, following.priority
    from lane
    cross join lateral (
      select job.queue, job.kind, job.priority
      from holdfast.ready as job
      where (job.queue, job.kind, job.priority) > (lane.queue, lane.kind, lane.priority)
      order by job.queue, job.kind, job.priority
      limit 1
    ) as following
  ),
  running as materialized (
    select held.queue, job.tenant
    from holdfast.running as held
    cross join lateral (select tenant from holdfast.job where job.id = held.job_id limit 1) as job
    limit ${p.most}
  ),
  waiting as materialized (
    select job.queue, job.tenant
    from holdfast.waiting as waits
    cross join lateral (select queue, tenant from holdfast.job where job.id = waits.job_id limit 1) as job
    limit ${p.most}
  ),
  public (queue) as materialized (
    select queue from holdfast.kind where tenant = '' or tenant = ${p.tenant}::text
    union
    select unnest(queues) from holdfast.session where ended_at is null and ${servesTenant(p)}
    union
    select name from holdfast.queue
  ),
  name (queue) as (
    select queue from public
    union
    select queue from lane
    union
    select queue from running
    union
    select queue from waiting
  )
  select name.queue as name, queue.paused_at, queue.paused_by, queue.pause_reason, due.own as queued, scheduled.own as scheduled, running.own as running, waiting.own as waiting,
    (extract(epoch from now() - case when ${p.tenant}::text is null then first.run_at else due.first_at end) * 1000)::float8 as oldest_due_ms,
    (
      select count(*)
      from holdfast.session
      where session.ended_at is null and session.lease_until > now() and name.queue = any(session.queues) and ${servesTenant(p)}
    ) as workers,
    due.is_capped or scheduled.is_capped or running.is_capped or waiting.is_capped as is_capped
  from name
  left join holdfast.queue on queue.name = name.queue
  cross join lateral (${counted(p, queuedRows(p, '<='))}) as due
  cross join lateral (${counted(p, queuedRows(p, '>'))}) as scheduled
  cross join lateral (
    select min(job.run_at) as run_at
    from lane
    cross join lateral (
      select job.run_at
      from holdfast.ready as job
      where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority and job.run_at <= now()
      order by job.run_at
      limit 1
    ) as job
    where lane.queue = name.queue
  ) as first
  cross join lateral (
    select count(*) filter (where running.queue = name.queue and (${p.tenant}::text is null or running.tenant = ${p.tenant})) as own,
      count(*) >= ${p.most}::int as is_capped
    from running
  ) as running
  cross join lateral (
    select count(*) filter (where waiting.queue = name.queue and (${p.tenant}::text is null or waiting.tenant = ${p.tenant})) as own,
      count(*) >= ${p.most}::int as is_capped
    from waiting
  ) as waiting
  -- the name of a queue that only another tenant uses is not for this one
  where ${p.tenant}::text is null or due.own + scheduled.own + running.own + waiting.own > 0 or name.queue in (select queue from public)
  order by name.queue`,
)

/** A session, with what it holds. */
export interface SessionRow {
  id: number
  host: string
  pid: number
  version: string
  supervisor: string | null
  started_at: Date
  heartbeat_at: Date
  lease_until: Date
  ended_at: Date | null
  ended_by: string | null
  exit: string | null
  kinds: string[]
  queues: string[]
  concurrency: number
  running: number
  is_claiming: boolean
  busy: number
  unresponsive: number
  blocked_ms: number
  is_locked: boolean
  is_live: boolean
}

interface SessionPage {
  before: number | null
  limit: number
}

/** A page of sessions, the latest first. The condition stands in the text, or the index of the living could not be used. */
const sessionsThat = (p: SessionPage, which: Sql) => sql`
  with locked as materialized (
    select objid
    from pg_locks
    where locktype = 'advisory' and classid = ${sessionLockClass}::int and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())
  )
  select id, host, pid, version, supervisor, started_at, heartbeat_at, lease_until, ended_at, ended_by, exit, kinds, queues, concurrency,
    is_claiming, busy, unresponsive, blocked_ms,
    (
      select count(*)
      from (select from holdfast.running where running.session_id = session.id limit 10000) as held
    ) as running,
    exists (select from locked where locked.objid = session.id::int::oid) as is_locked,
    ended_at is null and lease_until > now() as is_live
  from holdfast.session
  where ${which} and (${p.before}::bigint is null or session.id < ${p.before})
  order by session.id desc
  limit ${p.limit}`

/** Sessions that have not ended. */
export const livingSessions = statement<SessionRow>()('session.living', (p: SessionPage) =>
  sessionsThat(p, raw('session.ended_at is null')),
)

/** Sessions that have ended, until they are forgotten. */
export const endedSessions = statement<SessionRow>()('session.ended', (p: SessionPage) =>
  sessionsThat(p, raw('session.ended_at is not null')),
)
