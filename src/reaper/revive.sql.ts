import { ending, wakeIfJoined } from '../store/ending.sql.ts'
import { holders } from '../store/holders.sql.ts'
import { ofKind } from '../store/kind.sql.ts'
import { snapshotting } from '../store/snapshot.sql.ts'
import { eventOf, legal, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'

/** An attempt that nobody will move on. */
export interface OrphanRow {
  id: string
  attempt: number
  kind: string
  session_id: number
  stage: number
  /** What gave it away: a rung of the recovery ladder. */
  rung: string
  /** How long ago its worker gave the last sign, or should have. */
  lost_ms: number
  is_spent: boolean
}

/** How many orphans to find, and how many to step over. */
interface Batch {
  limit: number
  offset?: number
}

/** Whose session has ended, or whose row is gone. The same words select and re-check. */
const isAbandoned = raw(
  `not exists (select from holdfast.session where session.id = job.session_id and session.ended_at is null)`,
)
/** Whose time is up, although its worker may live. */
const isHung = raw('job.deadline_at < now()')
/** Whose worker was heard of after its session had been ended: nobody crashed. */
const cameBackOf = (row: string) =>
  raw(`exists (select from holdfast.session where session.id = ${row}.session_id and session.came_back_at is not null)`)
/** Whose loss was nobody's crash: its worker came back, or somebody revoked its key. */
const isInnocent = sql`(${cameBackOf('job')} or exists (
        select from holdfast.session where session.id = job.session_id and session.ended_by = 'key revoked'
      ))`
/** How the process of a session ended, if its supervisor saw it. */
const exitOf = (row: string) => raw(`(select session.exit from holdfast.session where session.id = ${row}.session_id)`)
/** Whose next loss of a worker is one too many. */
const isSpent = sql`(job.crashes + 1 >= job.crash_budget and not ${isInnocent})`
/** A worker that merely fell silent may come back. Until two leases after its last sign, its jobs on their last lives are not given up. */
const mayReturn =
  raw(`(session.ended_by in ('lease ran out', 'lock gone') and session.came_back_at is null and session.exit is null
      and now() < session.lease_until + (session.lease_until - session.heartbeat_at)
      -- or the clock was set back since
      and session.heartbeat_at < now() + interval '2 s')`)

/**
 * Attempts of ended sessions. The recursion hops from one holding session to the next along the index, so its cost is the number
 * of sessions that hold anything, however many jobs are queued or finished.
 */
export const findAbandoned = statement<OrphanRow>()(
  'orphan.abandoned',
  (p: Batch) => sql`
  with recursive ${holders},
  ended as materialized (
    select holder.session_id, coalesce(session.ended_by, 'session row gone') as rung, session.heartbeat_at,
      coalesce(${mayReturn}, false) as may_return
    from holder
    left join holdfast.session on session.id = holder.session_id
    where holder.session_id is not null and (session.id is null or session.ended_at is not null)
  )
  select job.id, job.attempt, job.kind, job.stage, job.session_id, ended.rung,
    coalesce(extract(epoch from now() - ended.heartbeat_at) * 1000, 0)::float8 as lost_ms, job.is_spent
  from ended
  cross join lateral (
    select job.id, job.attempt, job.kind, job.stage, job.session_id, ${isSpent} as is_spent
    from holdfast.live_job as job
    where job.session_id = ended.session_id and ${legal('revive')} and not (ended.may_return and ${isSpent})
    limit ${p.limit + (p.offset ?? 0)}
  ) as job
  limit ${p.limit}
  offset ${p.offset ?? 0}`,
)

/**
 * Gives attempts more time, because nobody knows how much has passed: the database could not be reached, or its clock was set forward. Their
 * workers go by clocks of their own.
 */
export const extendDeadlines = statement<{ id: string }>()(
  'attempt.extend',
  (p: { ms: number }) => sql`
  update holdfast.live_job
  set deadline_at = deadline_at + ${p.ms}::float8 * interval '1 ms'
  where id = any(array(
    select job.id
    from holdfast.live_job as job
    where job.session_id is not null and job.deadline_at is not null
    for update skip locked
  ))
  returning id`,
)

/**
 * Attempts of living sessions whose deadline has passed: their handlers hang, or their workers forgot them. None if the lease of the lead is
 * over: then the clock may have been set forward, and the next to lead finds out.
 */
export const findHung = statement<OrphanRow>()(
  'orphan.hung',
  (p: Batch) => sql`
  select job.id, job.attempt, job.kind, job.stage, job.session_id, 'deadline passed' as rung,
    (extract(epoch from now() - job.deadline_at) * 1000)::float8 as lost_ms, job.is_spent
  from holdfast.session
  cross join lateral (
    select job.id, job.attempt, job.kind, job.stage, job.session_id, job.deadline_at, ${isSpent} as is_spent
    from holdfast.live_job as job
    where job.session_id = session.id and ${isHung} and ${legal('revive')}
    order by job.deadline_at
    limit ${p.limit + (p.offset ?? 0)}
  ) as job
  where session.ended_at is null and not exists (select from holdfast.leader where lease_until <= now())
  limit ${p.limit}
  offset ${p.offset ?? 0}`,
)

/** That attempt, if nobody will move it on. */
export const findOrphan = statement<OrphanRow>()(
  'orphan.one',
  (p: { id: string }) => sql`
  select job.id, job.attempt, job.kind, job.stage, job.session_id,
    case when session.id is null then 'session row gone' when session.ended_at is not null then coalesce(session.ended_by, 'ended')
      else 'deadline passed' end as rung,
    (extract(epoch from now() - case when session.ended_at is null and session.id is not null then job.deadline_at
      else coalesce(session.heartbeat_at, now()) end) * 1000)::float8 as lost_ms, ${isSpent} as is_spent
  from holdfast.live_job as job
  left join holdfast.session on session.id = job.session_id
  where job.id = ${p.id}::uuid and (${isAbandoned} or ${isHung}) and ${legal('revive')}`,
)

interface Orphans {
  orphans: OrphanRow[]
}

const mine = (p: Orphans) => sql`
    select *
    from unnest(
      ${p.orphans.map((orphan) => orphan.id)}::uuid[], ${p.orphans.map((orphan) => orphan.attempt)}::int[],
      ${p.orphans.map((orphan) => orphan.rung)}::text[], ${p.orphans.map((orphan) => orphan.lost_ms)}::float8[],
      ${p.orphans.map((orphan) => orphan.session_id)}::bigint[]
    ) as mine (id, attempt, rung, lost_ms, session_id)`

const isOrphan = sql`job.id = mine.id and job.attempt = mine.attempt and (${isAbandoned} or ${isHung})`

/** Puts orphans back in their queues. What another leader has moved meanwhile, or what is no orphan any more, is left alone. */
export const reviveJobs = statement<{ id: string }>()(
  'job.revive',
  (p: Orphans) => sql`
  with mine as materialized (${mine(p)}),
  back as (
    update holdfast.live_job as job
    set state = ${target('revive')}, crashes = job.crashes + case when ${isInnocent} then 0 else 1 end, session_id = null,
      deadline_at = null, run_at = now()
    from mine
    where ${isOrphan} and not ${isSpent} and ${legal('revive')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage, job.crashes, mine.rung, mine.lost_ms, mine.session_id
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf('revive')}, ${target('revive')}, id, kind, tenant, session_id, attempt, stage,
      json_strip_nulls(json_build_object('rung', rung, 'lostMs', round(lost_ms::numeric), 'crashes', crashes,
        'exit', ${exitOf('back')}, 'cameBack', case when ${cameBackOf('back')} then true end))
    from back
  ),
  ${snapshotting('revive', 'back')}
  select id, ${wakeIdle} as woken
  from back`,
)

const spentError: Sql = sql`json_build_object('code', 'quarantined', 'message',
      format('The job lost %s workers, which is its crash budget (last: %s%s). Fix what kills them, then redo it.', crashes + 1, rung,
        ', ' || ${exitOf('gone')}))`

/** Whether a row stands at a stage that is optional, as its kind was last registered. An item stands at a stage of its parent, not of its own. */
const isOptional: Sql = sql`coalesce(not gone.is_part and (${ofKind('stages', 'gone')} -> gone.stage::int ->> 'optional')::boolean, false)`

/**
 * Ends orphans whose crash budget is spent: a job that kills its workers stops doing so. At an optional stage it ends as if that had failed
 * for good: what the earlier stages returned stays a usable result.
 */
export const quarantineJobs = statement<{ id: string }>()(
  'job.quarantine',
  (p: Orphans) => sql`
  with mine as materialized (${mine(p)}),
  gone as (
    delete from holdfast.live_job as job
    using mine
    where ${isOrphan} and ${isSpent} and ${legal('quarantine')}
    returning job.*, mine.rung, mine.lost_ms
  ),
  ${ending({
    move: 'quarantine',
    state: sql`case when ${isOptional} then ${target('quarantine', 'partial')} else ${target('quarantine', 'failed')} end`,
    crashes: raw('crashes + 1'),
    error: spentError,
    data: sql`json_strip_nulls(json_build_object('rung', rung, 'lostMs', round(lost_ms::numeric), 'crashes', crashes + 1, 'exit', ${exitOf('gone')}, 'error', ${spentError}))`,
  })},
  ${snapshotting('quarantine', 'gone')}
  select id, ${wakeIfJoined} as woken
  from gone`,
)
