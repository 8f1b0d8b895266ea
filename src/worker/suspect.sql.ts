import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isSuspect } from '../transitions/suspect.sql.ts'
import type { Lane } from './lanes.ts'

/** A lane in which a suspect waits. */
export interface WaitingSuspect {
  queue: string
  kind: string
  waited_ms: number
}

const anyone: Sql = raw('true')

const evenLocked: Sql = raw('')
/** As a claim does: whatever lock keeps the claim from a row, leaves it out here too. */
const onlyFree: Sql = raw('for update skip locked')

/** The lane in which a suspect has waited longest. `which` can exclude jobs, and `locking` those that another transaction has locked. */
function longestWaiting(p: { lanes: Lane[] }, which: Sql, locking: Sql): Sql {
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
    ${locking}
  ) as first
  where not exists (select from holdfast.queue where name = lane.queue and paused_at is not null)
  order by first.run_at
  limit 1`
}

/** The lane in which a suspect has waited longest. */
export const waitingSuspect = statement<WaitingSuspect>()('suspect.waiting', (p: { lanes: Lane[] }) =>
  longestWaiting(p, anyone, evenLocked),
)

/** The same for suspects that can be claimed now. It locks what it finds, so only a worker that is about to drain asks. */
export const freeSuspect = statement<WaitingSuspect>()('suspect.free', (p: { lanes: Lane[] }) =>
  longestWaiting(p, anyone, onlyFree),
)

interface RemoteLook {
  lanes: Lane[]
  tenant: string | null
}

/** What a remote worker may run: no parts, and no jobs of other tenants if it belongs to one. */
const remotely = ({ tenant }: RemoteLook): Sql =>
  sql`not job.is_part and (${tenant}::text is null or job.tenant = ${tenant}::text)`

/** The lane in which a suspect has waited longest for a remote worker. */
export const waitingRemoteSuspect = statement<WaitingSuspect>()('suspect.waiting_remote', (p: RemoteLook) =>
  longestWaiting(p, remotely(p), evenLocked),
)

/** The same for suspects that it can claim now. */
export const freeRemoteSuspect = statement<WaitingSuspect>()('suspect.free_remote', (p: RemoteLook) =>
  longestWaiting(p, remotely(p), onlyFree),
)

/** A worker that hasn't renewed its drain for this long no longer counts as draining. */
const quietMs = 10_000

/** Makes this session the one that drains for a kind, or renews it. No row: another one does, or the row is locked. */
export const takeDrain = statement<{ session_id: number }>()(
  'drain.take',
  (p: { sessionId: number; queue: string; kind: string }) => sql`
  with free as materialized (
    select drain.queue, drain.kind
    from holdfast.drain
    where drain.queue = ${p.queue} and drain.kind = ${p.kind} and (drain.session_id = ${p.sessionId}::bigint
      or drain.renewed_at < now() - ${raw(`interval '${quietMs} ms'`)}
      or not exists (select from holdfast.session where id = drain.session_id and ended_at is null))
    for update skip locked
  ),
  next as (
    update holdfast.drain
    set session_id = ${p.sessionId}::bigint, renewed_at = now()
    from free
    where drain.queue = free.queue and drain.kind = free.kind
    returning drain.session_id
  ),
  first as (
    insert into holdfast.drain (queue, kind, session_id)
    select ${p.queue}, ${p.kind}, ${p.sessionId}::bigint
    where not exists (select from holdfast.drain where queue = ${p.queue} and kind = ${p.kind})
    on conflict (queue, kind) do nothing
    returning session_id
  )
  select session_id from next
  union all
  select session_id from first`,
)

/** Ends the drains of a session. A locked row is skipped: without renewal it soon stops counting. */
export const endDrain = statement<{ session_id: number }>()(
  'drain.end',
  (p: { sessionId: number }) => sql`
  delete from holdfast.drain
  where (queue, kind) in (
    select drain.queue, drain.kind
    from holdfast.drain
    where drain.session_id = ${p.sessionId}::bigint
    for update skip locked
  )
  returning session_id`,
)
