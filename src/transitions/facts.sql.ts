/**
 * What each source of truth says about a job, as one JSON object: the interface Facts in src/why/facts.ts. `why` reads it on request,
 * and a settle that ends badly keeps it as a snapshot, so both are built here. A snapshot omits what costs most and says least about the
 * past: ledgers, locks, other workers, groups, deliveries.
 */
import { raw, type Sql, sql } from '../postgres/sql.ts'

/** What is added to the facts for `why`: further members of an object as `, 'name', value`, or a value. */
export interface Asked {
  events: number
  kind: Sql
  queue: Sql
  session: Sql
  /** The session that the facts are about. */
  sessionId: Sql
  isLocked: Sql
  /** Whether to look for live items of the row `barrier`. */
  looksForItems: Sql
  ledger: Sql
  stragglers: Sql
  workers: Sql
  ahead: Sql
  continues: Sql
  groups: Sql
  deliveries: Sql
  oldestWriter: Sql
  oldestSnapshot: Sql
  /** Further facts. */
  more: Sql
}

const none = raw('null')
const nothing = raw('')

/** What a snapshot keeps. What has joined rarely has live items. */
export const unasked: Asked = {
  events: 3,
  kind: nothing,
  queue: nothing,
  session: nothing,
  sessionId: raw('job.session_id'),
  isLocked: none,
  looksForItems: raw('barrier.joined_at is null'),
  ledger: none,
  stragglers: none,
  workers: none,
  ahead: none,
  continues: none,
  groups: raw(`'[]'::json`),
  deliveries: none,
  oldestWriter: none,
  oldestSnapshot: none,
  more: nothing,
}

/**
 * The facts about the job with that id, whose row is `job`, with the columns of `job_status`; a row of nulls if there is no such job.
 * Every lookup uses an index.
 */
export function factsOf(id: Sql, asked: Asked): Sql {
  return sql`json_build_object(
    'at', now(),
    'job', ${row},
    'kind', ${kind(asked)},
    'outputs', ${outputs(id)},
    'progress', ${progress(id)},
    'session', ${session(asked)},
    'queue', json_build_object('name', job.queue, 'pausedAt', (select queue.paused_at from holdfast.queue where queue.name = job.queue)${asked.queue}),
    'workers', ${asked.workers},
    'ahead', ${asked.ahead},
    'wait', ${wait(id)},
    'unique', ${unique(id)},
    'barriers', ${barriers(id, asked)},
    'itemOf', ${itemOf},
    'continues', ${asked.continues},
    'events', ${events(id, asked)},
    'groups', ${asked.groups},
    'deliveries', ${asked.deliveries},
    'oldestWriter', ${asked.oldestWriter},
    'oldestSnapshot', ${asked.oldestSnapshot},
    'leader', ${leader},
    'refusals', ${refusals(id)}${asked.more})`
}

const row =
  raw(`case when job.id is not null then json_build_object('id', job.id, 'kind', job.kind, 'queue', job.queue, 'tenant', job.tenant, 'state', job.state,
      'stage', job.stage, 'attempt', job.attempt, 'failures', job.failures, 'crashes', job.crashes, 'crashBudget', job.crash_budget,
      'priority', job.priority, 'submittedAt', job.submitted_at, 'runAt', job.run_at, 'deadlineAt', job.deadline_at, 'sessionId', job.session_id,
      'finishedAt', job.finished_at, 'isFlawed', job.is_flawed, 'error', case when job.error is not null then
        json_build_object('code', job.error ->> 'code', 'message', left(job.error ->> 'message', 1000)) end) end`)

const kind = (asked: Asked) => sql`(
      select json_build_object('stages', json_array_length(kind.stages), 'queue', kind.queue, 'seenAt', kind.seen_at,
        'tenant', nullif(kind.tenant, '')${asked.kind})
      from holdfast.kind
      where kind.tenant in ('', job.tenant) and kind.name = job.kind
      order by kind.tenant
      limit 1
    )`

const wait = (id: Sql) => sql`(
      select json_build_object('signal', waits.name, 'since', waits.since, 'until', waits.until, 'closedAt', waits.closed_at,
        'sentAt', (select signal.sent_at from holdfast.signal where signal.job_id = waits.job_id and signal.name = waits.name))
      from holdfast.signal_wait as waits
      where waits.job_id = ${id} and waits.stage = job.stage
    )`

const unique = (id: Sql) => sql`(
      select json_build_object('key', held.key, 'until', held.until)
      from holdfast.unique_job as held
      where held.job_id = ${id}
      limit 1
    )`

const outputs = (id: Sql) => sql`coalesce((
      select json_agg(json_build_object('stage', output.stage, 'name', output.name, 'attempt', output.attempt, 'at', output.at) order by output.stage)
      from holdfast.stage_output as output
      where output.job_id = ${id}
    ), '[]')`

const progress = (id: Sql) => sql`(
      select json_build_object('stage', progress.stage, 'attempt', progress.attempt, 'done', progress.done, 'total', progress.total, 'at', progress.at)
      from holdfast.job_progress as progress
      where progress.job_id = ${id}
    )`

/** The last events of a job, as a table `last`. */
export function lastEvents(id: Sql, most: number): Sql {
  return sql`(
        select *
        from holdfast.event
        where event.job_id = ${id}
        order by event.seq desc
        limit ${raw(String(most))}
      ) as last`
}

const events = (id: Sql, { events: most }: Asked) => sql`coalesce((
      select json_agg(json_build_object('seq', last.seq, 'at', last.at, 'type', last.type, 'state', last.state, 'attempt', last.attempt,
        'stage', last.stage, 'sessionId', last.session_id, 'data', case when octet_length(last.data::text) <= 2000 then last.data end) order by last.seq)
      from ${lastEvents(id, most)}
    ), '[]')`

/** A server that was started after the session took its lock can't know of the lock. */
const session = (asked: Asked) => sql`(
      select json_build_object('id', session.id, 'startedAt', session.started_at, 'heartbeatAt', session.heartbeat_at, 'leaseUntil', session.lease_until,
        'lostAfterMs', extract(epoch from session.lost_after) * 1000, 'endedAt', session.ended_at, 'endedBy', session.ended_by,
        'canTellLock', session.locked_on is not distinct from pg_postmaster_start_time(), 'isLocked', ${asked.isLocked},
        'isRemote', session.remote is not null, 'concurrency', session.concurrency, 'host', session.host, 'pid', session.pid,
        'version', session.version${asked.session})
      from holdfast.session
      where session.id = ${asked.sessionId}
    )`

const barriers = (id: Sql, asked: Asked) => sql`coalesce((
      select json_agg(json_build_object('id', barrier.id, 'stage', barrier.stage, 'openedAt', barrier.opened_at, 'sealedAt', barrier.sealed_at,
        'armedAt', barrier.armed_at, 'joinedAt', barrier.joined_at, 'stoppedAt', barrier.stopped_at, 'expiresAt', barrier.expires_at,
        'extended', barrier.extended, 'movedAt', barrier.moved_at, 'total', barrier.total, 'succeeded', barrier.succeeded, 'failed', barrier.failed,
        'cancelled', barrier.cancelled, 'hasLive', ${asked.looksForItems} and exists (select from holdfast.live_items(barrier.id)),
        'ledger', ${asked.ledger}, 'stragglers', ${asked.stragglers}) order by barrier.stage)
      from holdfast.barrier
      where barrier.job_id = ${id}
    ), '[]')`

const itemOf = raw(`case when job.barrier_id is not null then (
      select json_build_object('barrierId', job.barrier_id, 'position', job.position, 'isThere', barrier.id is not null, 'jobId', barrier.job_id,
        'stage', barrier.stage, 'total', barrier.total, 'succeeded', barrier.succeeded, 'failed', barrier.failed, 'cancelled', barrier.cancelled,
        'joinedAt', barrier.joined_at, 'stoppedAt', barrier.stopped_at, 'expiresAt', barrier.expires_at,
        'parentState', (select parent.state from holdfast.job_status as parent where parent.id = barrier.job_id))
      from (values (1)) as once (n)
      left join holdfast.barrier on barrier.id = job.barrier_id
    ) end`)

const leader = raw(`(
      select json_build_object('term', leader.term, 'holder', leader.holder, 'renewedAt', leader.renewed_at, 'leaseUntil', leader.lease_until,
        'sweptAt', leader.swept_at, 'sweepMs', leader.sweep_ms)
      from holdfast.leader
      where leader.is_only
    )`)

const refusals = (id: Sql) => sql`coalesce((
      select json_agg(json_build_object('at', late.at, 'attempt', late.attempt, 'sessionId', late.session_id, 'write', late.write) order by late.id)
      from (select * from holdfast.refusal where refusal.job_id = ${id} order by refusal.id desc limit 5) as late
    ), '[]')`
