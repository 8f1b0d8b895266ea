import { raw, type Sql, sql, statement } from '../store/sql.ts'
import { isSuspect } from '../store/suspect.sql.ts'
import type { Lane } from './lanes.ts'

/** A lane in which a suspect waits. */
export interface WaitingSuspect {
  queue: string
  kind: string
  waited_ms: number
}

const anyone: Sql = raw('true')

/** Where a suspect has waited longest among these lanes. `which` may leave some out. */
function longestWaiting(p: { lanes: Lane[] }, which: Sql): Sql {
  return sql`
  select lane.queue, lane.kind, (extract(epoch from now() - first.run_at) * 1000)::float8 as waited_ms
  from unnest(
    ${p.lanes.map((lane) => lane.queue)}::text[], ${p.lanes.map((lane) => lane.kind)}::text[],
    ${p.lanes.map((lane) => lane.priority)}::smallint[], ${p.lanes.map((lane) => lane.stageCount)}::smallint[]
  ) as lane (queue, kind, priority, stage_count)
  cross join lateral (
    select job.run_at
    from holdfast.ready as job
    where job.queue = lane.queue and job.kind = lane.kind and job.priority = lane.priority
      and job.run_at <= now() and job.stage < lane.stage_count and ${isSuspect} and ${which}
    order by job.run_at
    limit 1
  ) as first
  where not exists (select from holdfast.queue where name = lane.queue and paused_at is not null)
  order by first.run_at
  limit 1`
}

/** Where a suspect has waited longest for one of these lanes' workers. */
export const waitingSuspect = statement<WaitingSuspect>()('suspect.waiting', (p: { lanes: Lane[] }) =>
  longestWaiting(p, anyone),
)

/** The same for a remote worker: it runs no parts, and that of a tenant nothing of others. */
export const waitingRemoteSuspect = statement<WaitingSuspect>()(
  'suspect.waiting_remote',
  (p: { lanes: Lane[]; tenant: string | null }) =>
    longestWaiting(p, sql`not job.is_part and (${p.tenant}::text is null or job.tenant = ${p.tenant}::text)`),
)

/** A worker that has not looked for so long does not drain any more. */
const quietMs = 10_000

/** Makes this session the one that drains for a kind, or keeps it so. No row back: another one does. */
export const takeDrain = statement<{ session_id: number }>()(
  'drain.take',
  (p: { sessionId: number; queue: string; kind: string }) => sql`
  insert into holdfast.drain as drain (queue, kind, session_id)
  values (${p.queue}, ${p.kind}, ${p.sessionId})
  on conflict (queue, kind) do update
  set session_id = excluded.session_id, renewed_at = now()
  where drain.session_id = excluded.session_id or drain.renewed_at < now() - ${raw(`interval '${quietMs} ms'`)}
    or not exists (select from holdfast.session where id = drain.session_id and ended_at is null)
  returning session_id`,
)

/** Ends the draining of a session. */
export const endDrain = statement<{ session_id: number }>()(
  'drain.end',
  (p: { sessionId: number }) => sql`
  delete from holdfast.drain
  where session_id = ${p.sessionId}
  returning session_id`,
)
