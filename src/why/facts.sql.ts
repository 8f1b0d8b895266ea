import { sql, statement } from '../store/sql.ts'
import { type Facts, type HandlerFacts, mostAhead, type WorkerFacts } from './facts.ts'

/** A snapshot that a settle kept. */
export interface SnapshotRow {
  at: string
  attempt: number
  event: string
  /** With `trouble` in place of all else if they could not be read. */
  facts: Facts | { trouble: string }
}

/** What the workers say of themselves, and what else explains where a job is. */
export interface VitalsRow {
  workers: Pick<WorkerFacts, 'claiming' | 'busy' | 'unresponsive' | 'blocked' | 'blockedMs'>
  /** Of the session that holds the job. */
  blocked_ms: number | null
  unresponsive: HandlerFacts[]
  /** Of its queue, if it is paused. */
  paused_by: string | null
  pause_reason: string | null
  /** How the process of its session ended, if a supervisor saw it. */
  exit: string | null
  /** The names of the stages of its kind. */
  stages: string[] | null
  /** The queue that a rule of its own tenant names, which does not apply because there is one for all tenants. */
  own_queue: string | null
  ahead: number | null
}

/** What every source says about a job, with the last snapshots of it. Without facts: no source knows it. */
export const readFacts = statement<VitalsRow & { facts: Facts | null; snapshots: SnapshotRow[] }>()(
  'why.facts',
  (p: { id: string; shown: number }) => sql`
  with told as materialized (
    select coalesce(holdfast.facts_of(${p.id}::uuid, true), holdfast.facts_of_ended(${p.id}::uuid)) as facts
  ),
  living as materialized (
    select *
    from holdfast.session
    where session.ended_at is null and session.lease_until > now()
  )
  select told.facts, (
    select json_build_object('claiming', count(*) filter (where is_claiming), 'busy', coalesce(sum(busy), 0),
      'unresponsive', coalesce(sum(living.unresponsive), 0), 'blocked', count(*) filter (where is_claiming and blocked_ms > 0),
      'blockedMs', coalesce(max(blocked_ms), 0))
    from living
    where (living.tenant is null or living.tenant = told.facts #>> '{job,tenant}') and exists (
      select
      from unnest(living.kinds, living.queues) as served (kind, queue)
      where served.kind = told.facts #>> '{job,kind}' and served.queue = told.facts #>> '{job,queue}'
    )
  ) as workers, (
    select blocked_ms from living where id = (told.facts #>> '{job,sessionId}')::bigint
  ) as blocked_ms, coalesce((
    select json_agg(json_build_object('sessionId', living.id, 'attempt', (handler ->> 'attempt')::int, 'stage', handler ->> 'stage',
      'reason', handler ->> 'reason', 'since', handler ->> 'since', 'host', living.host, 'pid', living.pid) order by living.id)
    from living
    cross join lateral json_array_elements(living.unresponsive_handlers) as handler
    where handler ->> 'id' = ${p.id}::uuid::text
  ), '[]') as unresponsive, queue.paused_by, queue.pause_reason, (
    select session.exit from holdfast.session where session.id = (told.facts #>> '{session,id}')::bigint
  ) as exit, (
    select array_agg(stage ->> 'name' order by place)
    from holdfast.kind
    cross join lateral json_array_elements(kind.stages) with ordinality as stages (stage, place)
    where kind.tenant = coalesce(told.facts #>> '{kind,tenant}', '') and kind.name = told.facts #>> '{job,kind}'
  ) as stages, (
    select kind.queue
    from holdfast.kind
    where kind.tenant = told.facts #>> '{job,tenant}' and kind.name = told.facts #>> '{job,kind}'
      and told.facts #>> '{kind,tenant}' is null
  ) as own_queue, holdfast.ahead_of(${p.id}::uuid, ${mostAhead}::int) as ahead, coalesce((
    select json_agg(json_build_object('at', last.at, 'attempt', last.attempt, 'event', last.event, 'facts', last.facts) order by last.attempt)
    from (
      select *
      from holdfast.snapshot
      where snapshot.job_id = ${p.id}::uuid
      order by snapshot.attempt desc
      limit ${p.shown}
    ) as last
  ), '[]') as snapshots
  from told
  left join holdfast.queue on queue.name = told.facts #>> '{job,queue}' and queue.paused_at is not null`,
)

/** Forgets snapshots of long ago. */
export const forgetSnapshots = statement<{ job_id: string }>()(
  'snapshot.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.snapshot
  where (job_id, attempt) in (
    select job_id, attempt
    from holdfast.snapshot
    where at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by at
    limit ${p.limit}
  ) and at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
  returning job_id`,
)
