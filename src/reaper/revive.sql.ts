import type { HeldFence, JobId } from '../job/id.ts'
import type { Page } from '../postgres/page.ts'
import { eventOf, raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { deadlineOf, heldPlace, requeueing, takingOutOnly } from '../transitions/leases.sql.ts'
import { snapshotting } from '../transitions/snapshot.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** An attempt that nothing will move without help. */
export interface OrphanRow {
  id: string
  attempt: number
  kind: string
  session_id: number
  stage: number
  /** The lease that holds it, and its slot there. */
  lease_id: number
  slot: number
  size: number
  /** How it was detected: a rung of the recovery ladder. */
  rung: string
  /** How long ago its worker showed the last sign of life, or should have settled it. */
  lost_ms: number
  is_spent: boolean
}

/** How many orphans to find, or in which leases only. */
export interface Batch {
  limit: number
  only?: readonly number[] | undefined
}

const isMeant = (p: Batch) => sql`(${p.only ?? null}::bigint[] is null or lease.id = any(${p.only ?? null}::bigint[]))`

/** Whether its session has ended or has no row. The same condition selects and re-checks. */
const isAbandoned = raw(
  `not exists (select from holdfast.session where session.id = lease.session_id and session.ended_at is null)`,
)
/** Whether its deadline has passed, although its worker may be alive. */
const isHung = sql`${deadlineOf('lease')} < now()`
/** Whether its worker was heard from after its session had been ended: it did not crash. */
const cameBackOf = (row: string) =>
  raw(`exists (select from holdfast.session where session.id = ${row}.session_id and session.came_back_at is not null)`)
/** Whether its loss was no crash: its worker came back, or the worker's API key was revoked. */
const isInnocent = sql`(${cameBackOf('job')} or exists (
        select from holdfast.session where session.id = job.session_id and session.ended_by = 'key revoked'
      ))`
/** How the process of its session exited, if its supervisor saw it. */
export const exitOf = (row: string) =>
  raw(`(select session.exit from holdfast.session where session.id = ${row}.session_id)`)
/** Whether losing one more worker spends its crash budget. */
export const isSpent = sql`(job.crashes + 1 >= job.crash_budget and not ${isInnocent})`
/** Whether a silent worker may still come back. Until two leases after its last heartbeat, no job is quarantined because of it. */
const mayReturn =
  raw(`(session.ended_by in ('lease ran out', 'lock gone') and session.came_back_at is null and session.exit is null
      and now() < session.lease_until + (session.lease_until - session.heartbeat_at)
      -- or the clock was set back since
      and session.heartbeat_at < now() + interval '2 s')`)

/** The columns of an attempt that was found. */
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

/** Attempts of ended sessions. The cost depends on the number of leases and of attempts found, not on how many jobs are queued or finished. */
export const findAbandoned = statement<OrphanRow>()(
  'orphan.abandoned',
  (p: Batch) => sql`
  with ended as materialized (
    select lease.id, coalesce(session.ended_by, 'session row gone') as rung, session.heartbeat_at, coalesce(${mayReturn}, false) as may_return
    from holdfast.lease
    left join holdfast.session on session.id = lease.session_id
    where (session.id is null or session.ended_at is not null) and ${isMeant(p)}
    order by lease.claimed_at, lease.id
  )
  select job.*, ended.rung, coalesce(extract(epoch from now() - ended.heartbeat_at) * 1000, 0)::float8 as lost_ms
  from ended
  cross join lateral (${attemptsOf('ended.id')}
  ) as job
  where not (ended.may_return and job.is_spent)
  limit ${p.limit}`,
)

/**
 * Attempts of live sessions whose deadline has passed: their handlers hang, or their workers forgot them. No time counts after the end of the
 * leader's lease: the clock may have been set forward, and the next leader finds out. A process that stands in for the leader counts the time
 * that it has watched since.
 */
export const findHung = statement<OrphanRow>()(
  'orphan.hung',
  (p: Batch & { watchedMs?: number }) => sql`
  with hung as materialized (
    select lease.id, ${deadlineOf('lease')} as deadline_at
    from holdfast.lease
    join holdfast.session on session.id = lease.session_id and session.ended_at is null
    where ${deadlineOf('lease')} < least(now(), (select lease_until from holdfast.leader) + ${p.watchedMs ?? 0}::float8 * interval '1 ms')
      and ${isMeant(p)}
    order by deadline_at, lease.id
  )
  select job.*, 'deadline passed' as rung, (extract(epoch from now() - hung.deadline_at) * 1000)::float8 as lost_ms
  from hung
  cross join lateral (${attemptsOf('hung.id')}
  ) as job
  limit ${p.limit}`,
)

/** The leases that there are. */
export const openLeases = statement<{ id: number }>()(
  'lease.open_ones',
  (p: Page<number>) => sql`
  select id
  from holdfast.lease
  where id > ${p.after}::bigint
  order by id
  limit ${p.limit}`,
)

/** The attempt of this job, if it is an orphan. */
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

/** Orphans to move. */
export interface Orphans {
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

/** Takes orphans out of their leases. Those that another leader has moved in the meantime, or that are no longer orphans, are left alone. */
export const taking = (p: Orphans, which: Sql) =>
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
    insert into holdfast.event_log (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf('revive')}, ${target('revive')}, id, kind, own_tenant, session_id, attempt, stage,
      json_strip_nulls(json_build_object('rung', rung, 'lostMs', round(lost_ms::numeric), 'crashes', crashes_then,
        'exit', ${exitOf('counted')}, 'cameBack', case when ${cameBackOf('counted')} then true end))
    from counted
  ),
  ${snapshotting('revive', 'counted')}
  select id, ${wakeIdle} as woken
  from counted`,
)
