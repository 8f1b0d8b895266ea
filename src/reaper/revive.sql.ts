import type { HeldFence, JobId } from '../job/id.ts'
import { ending, wakeIfJoined } from '../store/ending.sql.ts'
import { ofKind } from '../store/kind.sql.ts'
import { heldPlace, requeueing, takingOutOnly } from '../store/lease.sql.ts'
import { snapshotting } from '../store/snapshot.sql.ts'
import { eventOf, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'

/** An attempt that nobody will move on. */
export interface OrphanRow {
  id: string
  attempt: number
  kind: string
  session_id: number
  stage: number
  /** Where it is held. */
  lease_id: number
  slot: number
  size: number
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
  `not exists (select from holdfast.session where session.id = lease.session_id and session.ended_at is null)`,
)
/** Whose time is up, although its worker may live. */
const isHung = raw('lease.deadline_at < now()')
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
      and now() < session.lease_until + (session.lease_until - session.heartbeat_at))`)

/** What is told of an attempt that is found in the rows of `lease`, with its job. */
const found = sql`running.job_id as id, running.attempt, running.kind, running.stage, running.session_id, running.lease_id, running.slot, running.size`

/** The attempts of a lease, each with whether its crash budget is spent. */
const attemptsOf = (lease: string) => sql`
    select ${found}, ${isSpent} as is_spent
    from holdfast.running
    cross join lateral (
      select running.session_id, running.crashes, own.crash_budget
      from holdfast.job as own
      where own.id = running.job_id
      limit 1
    ) as job
    where running.lease_id = ${raw(lease)}`

/** Attempts of ended sessions. Its cost is the number of leases, however many jobs are queued or finished, and of the attempts that it finds. */
export const findAbandoned = statement<OrphanRow>()(
  'orphan.abandoned',
  (p: Batch) => sql`
  with ended as materialized (
    select lease.id, coalesce(session.ended_by, 'session row gone') as rung, session.heartbeat_at, coalesce(${mayReturn}, false) as may_return
    from holdfast.lease
    left join holdfast.session on session.id = lease.session_id
    where session.id is null or session.ended_at is not null
    order by lease.claimed_at, lease.id
  )
  select job.*, ended.rung, coalesce(extract(epoch from now() - ended.heartbeat_at) * 1000, 0)::float8 as lost_ms
  from ended
  cross join lateral (${attemptsOf('ended.id')}
  ) as job
  where not (ended.may_return and job.is_spent)
  limit ${p.limit}
  offset ${p.offset ?? 0}`,
)

/** Attempts of living sessions whose deadline has passed: their handlers hang, or their workers forgot them. */
export const findHung = statement<OrphanRow>()(
  'orphan.hung',
  (p: Batch) => sql`
  with hung as materialized (
    select lease.id, lease.deadline_at
    from holdfast.lease
    join holdfast.session on session.id = lease.session_id and session.ended_at is null
    where ${isHung}
    order by lease.deadline_at, lease.id
  )
  select job.*, 'deadline passed' as rung, (extract(epoch from now() - hung.deadline_at) * 1000)::float8 as lost_ms
  from hung
  cross join lateral (${attemptsOf('hung.id')}
  ) as job
  limit ${p.limit}
  offset ${p.offset ?? 0}`,
)

/** That attempt, if nobody will move it on. */
export const findOrphan = statement<OrphanRow>()(
  'orphan.one',
  (p: { id: string }) => sql`
  select ${found}, ${isSpent} as is_spent,
    case when session.id is null then 'session row gone' when session.ended_at is not null then coalesce(session.ended_by, 'ended')
      else 'deadline passed' end as rung,
    (extract(epoch from now() - case when session.ended_at is null and session.id is not null then running.deadline_at
      else coalesce(session.heartbeat_at, now()) end) * 1000)::float8 as lost_ms
  from (select ${p.id}::uuid as id) as wanted
  cross join lateral ${heldPlace('wanted.id')} as running
  join holdfast.lease on lease.id = running.lease_id
  cross join lateral (select running.session_id, running.crashes, own.crash_budget from holdfast.job as own where own.id = wanted.id) as job
  left join holdfast.session on session.id = running.session_id
  where ${isAbandoned} or ${isHung}`,
)

interface Orphans {
  orphans: OrphanRow[]
}

const fencesOf = (p: Orphans): HeldFence[] =>
  p.orphans.map(({ id, attempt, session_id, lease_id, slot, size }) => ({
    id: id as JobId,
    attempt,
    sessionId: session_id,
    leaseId: lease_id,
    slot,
    leaseSize: size,
  }))

/** Takes orphans out of their leases. What another leader has moved meanwhile, or what is no orphan any more, is left alone. */
const taking = (p: Orphans, which: Sql) =>
  takingOutOnly(
    fencesOf(p),
    {
      names: 'rung, lost_ms',
      lists: sql`${p.orphans.map((orphan) => orphan.rung)}::text[], ${p.orphans.map((orphan) => orphan.lost_ms)}::float8[]`,
    },
    { lease: sql`(${isAbandoned} or ${isHung})`, job: which },
  )

/** Puts orphans back in their queues. */
export const reviveJobs = statement<{ id: string }>()(
  'job.revive',
  (p: Orphans) => sql`
  with ${taking(p, sql`not ${isSpent}`)},
  counted as materialized (
    select job.*, job.crashes + case when ${isInnocent} then 0 else 1 end as crashes_then
    from gone as job
  ),
  back as (${requeueing({ source: 'counted', runAt: raw('now()'), crashes: 'crashes_then' })}
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf('revive')}, ${target('revive')}, id, kind, own_tenant, session_id, attempt, stage,
      json_strip_nulls(json_build_object('rung', rung, 'lostMs', round(lost_ms::numeric), 'crashes', crashes_then,
        'exit', ${exitOf('counted')}, 'cameBack', case when ${cameBackOf('counted')} then true end))
    from counted
  ),
  ${snapshotting('revive', 'counted')}
  select id, ${wakeIdle} as woken
  from counted`,
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
  with ${taking(p, isSpent)},
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
