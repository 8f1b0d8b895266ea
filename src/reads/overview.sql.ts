import { highestId, lowestId } from '../job/id.ts'
import { sessionLockClass, sessionLockOf } from '../postgres/locks.ts'
import { raw, type Sql, sql, statement, target } from '../postgres/sql.ts'

/** A queue, and what is in it. */
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
  /** The maximum number of rows to count for each queue and state. */
  most: number
}

/** Whether a session serves this tenant: a remote worker of one tenant, and its queues, are hidden from the others. */
const servesTenant = (p: { tenant: string | null }) =>
  sql`(${p.tenant}::text is null or session.tenant is null or session.tenant = ${p.tenant})`

const workersOf = (p: { tenant: string | null }) => sql`(
      select count(*)
      from holdfast.session
      where session.ended_at is null and session.lease_until > now() and name.queue = any(session.queues) and ${servesTenant(p)}
    ) as workers`

/** Queues that every tenant may see, because workers serve them. Those that were ever paused are shown only without a tenant. */
const publicQueues = (p: Counting) => sql`public (queue) as materialized (
    select queue from holdfast.kind where tenant = '' or tenant = ${p.tenant}::text
    union
    select unnest(queues) from holdfast.session where ended_at is null and ${servesTenant(p)}
    union
    select name from holdfast.queue where ${p.tenant}::text is null
  )`

const isOf = (p: Counting) => sql`(${p.tenant}::text is null or job.tenant = ${p.tenant})`

/** Counts the rows of a scan up to the limit, and returns whether it reached the limit. */
const counted = (p: Counting, walk: Sql) => sql`
    select count(*) as own, count(*) >= ${p.most}::int as is_capped, min(walked.run_at) as first_at
    from (${walk} limit ${p.most}) as walked`

/** The queued jobs of a queue before or after now, lane by lane. Each scan is a range of the index, and stops at the limit. */
const queuedRows = (p: Counting, side: string) => sql`
      select job.run_at
      from lane
      cross join lateral (
        select job.run_at
        from holdfast.ready as job
        where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority and job.run_at ${raw(side)} now()
          and ${isOf(p)}
        order by job.run_at
        limit ${p.most}
      ) as job
      where lane.queue = name.queue`

/** Hops from lane to lane of all queues along the index. */
const lanes = raw(`
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
  `)

/** When the first due job of a queue became due. */
const firstDue = raw(`
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
  `)

/** How many of the `running` or `waiting` jobs are in a queue. */
const countedIn = (p: Counting, jobs: 'running' | 'waiting') => sql`
    select count(*) filter (where ${raw(jobs)}.queue = name.queue) as own,
      count(*) >= ${p.most}::int as is_capped
    from ${raw(jobs)}
  `

/**
 * All known queues, and what is in them. Hops along the lane index and the sessions, so that its cost depends on the number of lanes and
 * sessions, and on a limited number of rows in each.
 */
export const listQueues = statement<QueueRow>()(
  'queue.list',
  (p: Counting) => sql`
  with recursive lane (queue, kind, priority) as (${lanes}),
  running as materialized (
    select held.queue
    from holdfast.running as held
    where ${p.tenant}::text is null or exists (select from holdfast.job where job.id = held.job_id and job.tenant = ${p.tenant})
    limit ${p.most}
  ),
  waiting as materialized (
    select own.queue
    from holdfast.waiting as job
    cross join lateral (select queue from holdfast.job as own where own.id = job.job_id limit 1) as own
    where ${isOf(p)}
    limit ${p.most}
  ),
  ${publicQueues(p)},
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
    ${workersOf(p)},
    due.is_capped or scheduled.is_capped or running.is_capped or waiting.is_capped as is_capped
  from name
  left join holdfast.queue on queue.name = name.queue
  cross join lateral (${counted(p, queuedRows(p, '<='))}) as due
  cross join lateral (${counted(p, queuedRows(p, '>'))}) as scheduled
  cross join lateral (${firstDue}) as first
  cross join lateral (${countedIn(p, 'running')}) as running
  cross join lateral (${countedIn(p, 'waiting')}) as waiting
  -- a queue that only other tenants use is hidden from this one
  where ${p.tenant}::text is null or due.own + scheduled.own + running.own + waiting.own > 0 or name.queue in (select queue from public)
  order by name.queue`,
)

const isOwn = (p: {
  tenant: string
}) => sql`(job.tenant, job.job_id) >= (${p.tenant}::text, ${raw(`'${lowestId}'`)}::uuid)
      and (job.tenant, job.job_id) <= (${p.tenant}::text, ${raw(`'${highestId}'`)}::uuid)`

/**
 * The queues of one tenant, and what it has in them. Found by the index of tenants, so that the jobs of others are neither scanned nor
 * revealed. The index leaves out the tenant `default`. The comparisons use pairs, because no other index has that order.
 */
export const listQueuesOfTenant = statement<QueueRow>()(
  'queue.list_tenant',
  (p: Counting & { tenant: string }) => sql`
  with own as materialized (
    (select job.queue, ${target('submit')} as state, job.run_at
    from holdfast.ready as job
    where ${isOwn(p)} and job.tenant <> 'default'
    order by job.tenant, job.job_id
    limit ${p.most})
    union all
    (select job.queue, ${target('claim')}, null
    from holdfast.running as held
    cross join lateral (select queue from holdfast.job where job.id = held.job_id and job.tenant = ${p.tenant} limit 1) as job
    where coalesce(held.tenant, ${p.tenant}::text) = ${p.tenant}::text
    limit ${p.most})
    union all
    (select own.queue, ${target('fanOut')}, null
    from (
      select job.job_id
      from holdfast.waiting as job
      where ${isOwn(p)} and job.tenant <> 'default'
      order by job.tenant, job.job_id
      limit ${p.most}
    ) as job
    cross join lateral (select queue from holdfast.job as own where own.id = job.job_id limit 1) as own)
    limit ${p.most}
  ),
  has as materialized (
    select own.queue, count(*) filter (where own.state = ${target('submit')} and own.run_at <= now()) as queued,
      count(*) filter (where own.state = ${target('submit')} and own.run_at > now()) as scheduled,
      count(*) filter (where own.state = ${target('claim')}) as running,
      count(*) filter (where own.state = ${target('fanOut')}) as waiting,
      min(own.run_at) filter (where own.state = ${target('submit')} and own.run_at <= now()) as first_at
    from own
    group by own.queue
  ),
  ${publicQueues(p)},
  name (queue) as (
    select queue from public
    union
    select queue from has
  )
  select name.queue as name, queue.paused_at, queue.paused_by, queue.pause_reason, coalesce(has.queued, 0) as queued,
    coalesce(has.scheduled, 0) as scheduled, coalesce(has.running, 0) as running, coalesce(has.waiting, 0) as waiting,
    (extract(epoch from now() - has.first_at) * 1000)::float8 as oldest_due_ms, ${workersOf(p)},
    (select sum(queued + scheduled + running + waiting) >= ${p.most}::int from has) is true as is_capped
  from name
  left join holdfast.queue on queue.name = name.queue
  left join has on has.queue = name.queue
  order by name.queue`,
)

/** A session, and what it holds. */
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

/** A page of sessions, newest first. The condition is part of the text, or the index of live sessions could not be used. */
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
    exists (select from locked where locked.objid = ${raw(sessionLockOf('session.id'))}::oid) as is_locked,
    ended_at is null and lease_until > now() as is_live
  from holdfast.session
  where ${which} and (${p.before}::bigint is null or session.id < ${p.before})
  order by session.id desc
  limit ${p.limit}`

/** Sessions that have not ended. */
export const livingSessions = statement<SessionRow>()('session.living', (p: SessionPage) =>
  sessionsThat(p, raw('session.ended_at is null')),
)

/** Sessions that have ended and are not removed yet. */
export const endedSessions = statement<SessionRow>()('session.ended', (p: SessionPage) =>
  sessionsThat(p, raw('session.ended_at is not null')),
)
