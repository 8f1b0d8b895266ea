import { allMoves, announces, isEnding, type MoveName, moves } from '../job/machine.ts'
import { eventOf, raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isNoSuspect } from '../transitions/suspect.sql.ts'
import { ownedChecks } from './barrier.sql.ts'
import { bulkChecks } from './bulk.sql.ts'
import { type AuditScope, check, lacks, past, wasInLog } from './check.sql.ts'
import { fanOutChecks } from './fan-out.sql.ts'
import { flowChecks } from './flow.sql.ts'
import { scheduleChecks } from './schedule.sql.ts'
import { webhookChecks } from './webhooks.sql.ts'

function typesOf(pick: (move: MoveName) => boolean): Sql {
  return raw(
    allMoves
      .filter(pick)
      .map((move) => `'${announces(move)}'`)
      .join(', '),
  )
}

/** The events that end a job. */
const finalEvents = typesOf(isEnding)
/** The events that end an attempt, each at most once. A cancel ends the job, whatever its attempt, so it is not one of them. */
const attemptEvents = typesOf((move) => moves[move].isFenced || (moves[move].by === 'reaper' && can(move)))
function can(move: MoveName): boolean {
  return moves[move].from.some((state) => state === 'running')
}

const latest = (p: AuditScope, from: string, which = 'true') => sql`
    select *
    from ${raw(from)}
    where ${raw(which)}
    order by id desc
    limit ${p.latest}::bigint`

const ended = '(select job_id as id, * from holdfast.outcome) as ended'
const latestFinished = (p: AuditScope) => latest(p, ended)
const latestJobs = (p: AuditScope) => latest(p, 'holdfast.job as job')

/** Jobs that have not ended, with their counters: queued, waiting for their items, or running. */
const liveJobs = `(
      select job_id as id, attempt, stage, crashes from holdfast.ready
      union all
      select job_id, attempt, stage, crashes from holdfast.waiting
      union all
      select job_id, attempt, stage, crashes from holdfast.running
    ) as live`
const latestLive = (p: AuditScope) => latest(p, liveJobs)
/** The latest live jobs that were ever claimed: only those can have been settled. */
const latestTried = (p: AuditScope) => latest(p, liveJobs, 'attempt > 0')

/** Every check of the audit, by invariant. Each is one read-only statement, so it sees one snapshot. */
export const checks = {
  'job-is-in-one-place': check(
    'job_is_in_one_place',
    (p) => sql`
    with held as materialized (select job_id, count(*) as times from holdfast.running group by job_id)
    select job.id::text, case when place.times = 0 then 'is nowhere: neither queued, nor held, nor waiting, nor ended'
      else format('is in %s places at once', place.times) end
    from (${latestJobs(p)}) as job
    left join held on held.job_id = job.id
    cross join lateral (
      select coalesce(held.times, 0) + (select count(*) from holdfast.ready where ready.job_id = job.id)
        + (select count(*) from holdfast.waiting where waiting.job_id = job.id) + (select count(*) from holdfast.outcome where outcome.job_id = job.id) as times
    ) as place
    where place.times <> 1`,
  ),
  'place-has-job': check(
    'place_has_job',
    (p) => sql`
    select place.id::text, 'is queued, held, waiting or ended, but has no row in holdfast.job'
    from (
      select id from (${latestLive(p)}) as live
      union all
      select id from (${latestFinished(p)}) as finished
    ) as place
    where ${lacks(sql`holdfast.job where job.id = place.id`)}`,
  ),
  'outcome-was-written': check(
    'outcome_was_written',
    (p) => sql`
    select parked.job_id::text, format('attempt %s has ended, but the database refuses its outcome: %s', parked.attempt, left(parked.reason, 500))
    from holdfast.parked_outcome as parked
    where parked.parked_at < ${past(p)}`,
  ),
  'attempt-has-living-session': check(
    'attempt_has_living_session',
    (p) => sql`
    select job.id::text, format('attempt %s is owned by session %s, which %s', job.attempt, job.session_id,
      case when session.id is null then 'does not exist' else 'ended at ' || session.ended_at end)
    from (
      select running.job_id as id, running.attempt, running.session_id, running.crashes, own.crash_budget
      from holdfast.running
      left join holdfast.job as own on own.id = running.job_id
    ) as job
    left join holdfast.session on session.id = job.session_id
    where (session.id is null or session.ended_at < ${past(p)})
      -- a job on its last life is not quarantined while its worker may still come back
      and not coalesce(job.crashes + 1 >= job.crash_budget and session.came_back_at is null
        and session.lease_until + (session.lease_until - session.heartbeat_at) > ${past(p)}, false)`,
  ),
  'attempt-within-deadline': check(
    'attempt_within_deadline',
    (p) => sql`
    select job.job_id::text, format('attempt %s is past its deadline of %s', job.attempt, job.deadline_at)
    from holdfast.session
    join holdfast.running as job on job.session_id = session.id
    where job.deadline_at < ${past(p)}`,
  ),
  'session-within-lease': check(
    'session_within_lease',
    (p) => sql`
    select session.id::text, format('the lease ran out at %s, but the leader has not ended the session', session.lease_until)
    from holdfast.session
    where session.ended_at is null and session.lease_until < ${past(p)}
      and exists (select from holdfast.leader where lease_until > now() and acquired_at < ${past(p)})`,
  ),
  'somebody-leads': check(
    'somebody_leads',
    (p) => sql`
    select 'leader', format('there has been no leader since %s, although %s sessions are live', leader.lease_until, living.count)
    from holdfast.leader
    cross join (select count(*) from holdfast.session where ended_at is null and lease_until > now() and started_at < ${past(p)}) as living
    where leader.lease_until < ${past(p)} and living.count > 0`,
  ),
  'due-job-is-claimed': check(
    'due_job_is_claimed',
    (p) => sql`
    select job.id::text, format('has been due since %s, although session %s is idle and handles its kind', job.run_at, session.id)
    from holdfast.session
    cross join unnest(session.kinds, session.queues) as served (kind, queue)
    cross join generate_series(1, 4) as urgency (priority)
    cross join lateral (
      select job.job_id as id, job.run_at
      from holdfast.ready as job
      where job.queue = served.queue and job.kind = served.kind and job.priority = urgency.priority and job.run_at < ${past(p)}
        and ${isNoSuspect}
      order by job.run_at
      limit 5
    ) as job
    where session.ended_at is null and session.lease_until > now() and session.wants_wake and session.remote is null
      and not exists (select from holdfast.queue where name = served.queue and paused_at is not null)`,
  ),
  'job-has-payload': check(
    'job_has_payload',
    (p) => sql`
    select job.id::text, 'has lost its input'
    from (${latestJobs(p)}) as job
    where job.input is null and ${lacks(sql`holdfast.job_payload as payload where payload.job_id = job.id`)}`,
  ),
  'one-final-settle': check(
    'one_final_settle',
    (p) => sql`
    select job.id::text, format('ended %s times and was redone %s times', told.ends, told.redos)
    from (${latestFinished(p)}) as job
    cross join lateral (
      select count(*) filter (where event.type in (${finalEvents})) as ends,
        count(*) filter (where event.type = ${eventOf('redo')}) as redos
      from holdfast.event
      where event.job_id = job.id
    ) as told
    where told.ends <> told.redos + 1 and ${wasInLog}`,
  ),
  'live-job-not-ended': check(
    'live_not_ended',
    (p) => sql`
    select job.id::text, format('is live, but ended %s times and was redone %s times', told.ends, told.redos)
    from (${latestTried(p)}) as job
    cross join lateral (
      select count(*) filter (where event.type in (${finalEvents})) as ends,
        count(*) filter (where event.type = ${eventOf('redo')}) as redos
      from holdfast.event
      where event.job_id = job.id
    ) as told
    where told.ends <> told.redos and ${wasInLog}`,
  ),
  'one-settle-per-attempt': check(
    'one_settle_per_attempt',
    (p) => sql`
    select job.id::text, format('attempt %s was settled %s times', told.attempt, told.settles)
    from (
      select id from (${latestTried(p)}) as tried
      union all
      select id from (${latestFinished(p)}) as finished
    ) as job
    cross join lateral (
      select event.attempt, count(*) as settles
      from holdfast.event
      where event.job_id = job.id and event.type in (${attemptEvents})
      group by event.attempt
      having count(*) > 1
    ) as told`,
  ),
  'attempts-only-grow': check(
    'attempts_only_grow',
    (p) => sql`
    select job.id::text, format('is at attempt %s, but an event names attempt %s', job.attempt, told.attempt)
    from (
      select id, attempt from (${latestLive(p)}) as live
      union all
      select id, attempt from (${latestFinished(p)}) as finished
    ) as job
    cross join lateral (select max(event.attempt) as attempt from holdfast.event where event.job_id = job.id) as told
    where told.attempt > job.attempt`,
  ),
  'crashes-match-revivals': check(
    'crashes_match_revivals',
    (p) => sql`
    select job.id::text, format('counts %s crashes, but has events for %s revivals', job.crashes, told.revivals)
    from (${latest(p, liveJobs, 'crashes > 0')}) as job
    cross join lateral (
      select count(*) as revivals
      from holdfast.event
      where event.job_id = job.id and event.type = ${eventOf('revive')} and event.stage = job.stage
    ) as told
    where job.crashes > told.revivals and ${wasInLog}`,
  ),
  ...flowChecks,
  ...fanOutChecks,
  ...ownedChecks,
  ...webhookChecks,
  ...scheduleChecks,
  ...bulkChecks,
  'key-has-job': check(
    'key_has_job',
    (p) => sql`
    select key.job_id::text, format('the key %s of tenant %s refers to a job that does not exist', key.key, key.tenant)
    from (select * from holdfast.job_key limit ${p.latest}::bigint) as key
    where key.ended_at is null and ${lacks(sql`holdfast.job where id = key.job_id`)}`,
  ),
  'guards-stand': check(
    'guards_stand',
    () => sql`
    select wanted.name, 'this guard of the database is missing or disabled'
    from unnest(array['outcome_state', 'lease_size', 'outcome_stands', 'attempts_grow', 'bits_stay', 'owned_barrier_total', 'owned_barrier_owner',
      'owned_barrier_end', 'owned_fence', 'owned_arrival', 'delivery_state', 'delivery_end']) as wanted (name)
    where not exists (select from pg_constraint where conname = wanted.name and convalidated and connamespace = 'holdfast'::regnamespace)
      and not exists (select from pg_trigger where tgname = wanted.name and tgenabled <> 'D'
        and tgrelid in ('holdfast.outcome'::regclass, 'holdfast.ready'::regclass, 'holdfast.lease'::regclass, 'holdfast.owned_barrier'::regclass, 'holdfast.owned_part'::regclass))`,
  ),
} as const

/** The name of an invariant. */
export type Invariant = keyof typeof checks

/** Up to this many rows are counted; beyond that, the statistics of the server give an estimate. */
export const mostCounted = 100_000

/** Sums the statistics of partitions, because those of a partitioned table may be older. A table that was never analyzed has none at all. */
const sizeOf = (table: string, { where = 'true', statisticsOf = table } = {}) =>
  raw(`(
    select case when walked.count < ${mostCounted} then walked.count else greatest(walked.count, (
      select sum(greatest(pg_class.reltuples, 0))::bigint
      from pg_class
      where (oid = 'holdfast.${statisticsOf}'::regclass or oid in (select relid from pg_partition_tree('holdfast.${statisticsOf}')))
        and relkind <> 'p'
    )) end
    from (select count(*) from (select from holdfast.${table} where ${where} limit ${mostCounted}) as counted) as walked
  )`)

/** A job's row is an event, and so is an outcome, unless the job did not succeed. The view of the log has no statistics. */
const eventCount = sql`${sizeOf('event_log')} + ${sizeOf('job')} + ${sizeOf('outcome')}
      - ${sizeOf('outcome', { where: `state <> 'succeeded'`, statisticsOf: 'outcome_trouble' })}`

/** How many rows there are; estimated if there are very many. */
export const tableSizes = statement<{ live: number; finished: number; events: number }>()(
  'audit.sizes',
  () => sql`
  select ${sizeOf('ready')} + ${sizeOf('waiting')} + (select count(*) from holdfast.running) as live, ${sizeOf('outcome')} as finished,
    ${eventCount} as events`,
)
