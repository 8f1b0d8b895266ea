import { sessionLockClass, sessionLockOf } from '../postgres/locks.ts'
import { raw, sql, statement } from '../postgres/sql.ts'
import { freshVitals, type UnresponsiveHandler, type Vitals } from './vitals.ts'

/** What a session row says about its process. */
export interface SessionFacts {
  pid: number
  host: string
  supervisor: string | null
  version: string
  /** The kinds that it serves, and at the same index the queue of each. */
  kinds: string[]
  queues: string[]
  concurrency: number
  leaseMs: number
  lostAfterMs: number
}

/** Opens a session with a fresh lease. */
export const openSession = statement<{ id: number; lease_until: Date }>()(
  'session.open',
  (p: SessionFacts) => sql`
  insert into holdfast.session (pid, host, supervisor, version, kinds, queues, concurrency, lease_until, lost_after)
  values (${p.pid}, ${p.host}, ${p.supervisor}, ${p.version}, ${p.kinds}::text[], ${p.queues}::text[], ${p.concurrency},
    now() + ${p.leaseMs}::float8 * interval '1 ms', ${p.lostAfterMs}::float8 * interval '1 ms')
  returning id, lease_until`,
)

/** Takes the session's advisory lock, which is released when this connection ends. */
export const lockSession = statement<{ is_locked: boolean; backend: number }>()(
  'session.lock',
  (p: { id: number }) => sql`
  select pg_try_advisory_lock(${sessionLockClass}::int, ${raw(sessionLockOf('own.id'))}) as is_locked, pg_backend_pid() as backend
  from (select ${p.id}::bigint as id) as own`,
)

/** The process that a session belongs to. Absent for remote workers, which are identified by their keys. */
interface Holder {
  pid?: number
  host?: string
}

/** An id alone doesn't identify a session: a database restored from a backup hands out ids a second time. */
const isOf = ({ pid, host }: Holder) =>
  sql`(${pid ?? null}::int is null or (session.pid = ${pid ?? null}::int and session.host = ${host ?? null}::text))`

/** A heartbeat: renews the lease, and says how the process is doing. */
export interface Beat extends Holder {
  id: number
  isLocked: boolean
  leaseMs: number
  vitals?: Vitals
  /** Some of the handlers that ignore their signal. */
  unresponsive?: UnresponsiveHandler[]
}

/**
 * Renews the lease, and returns the pid of the backend. No row means that the session was ended and its attempts were
 * given to others, or that it belongs to another process.
 */
export const beat = statement<{ id: number; lease_until: Date; backend: number }>()(
  'session.beat',
  ({ vitals = freshVitals, unresponsive = [], ...p }: Beat) => sql`
  update holdfast.session
  set heartbeat_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
    locked_on = case when ${p.isLocked}::boolean then pg_postmaster_start_time() end,
    is_claiming = ${vitals.isClaiming}::boolean, busy = ${vitals.busy}::int, blocked_ms = ${vitals.blockedMs}::int,
    unresponsive = ${vitals.unresponsive}::int,
    unresponsive_handlers = ${unresponsive.length === 0 ? null : JSON.stringify(unresponsive)}::json
  where id = ${p.id} and ended_at is null and ${isOf(p)}
  returning id, lease_until, pg_backend_pid() as backend`,
)

/** Ends a session that holds no more jobs. */
export const closeSession = statement<{ id: number }>()(
  'session.close',
  (p: { id: number } & Holder) => sql`
  update holdfast.session
  set ended_at = now(), ended_by = 'itself', wants_wake = false
  where id = ${p.id} and ended_at is null and ${isOf(p)}
  returning id`,
)

/**
 * Records that the worker of an ended session is alive, so that the jobs it lost don't count as crashes. Applies once,
 * and only to a session that was ended because it was silent. No row means that it hasn't ended yet, ended for another
 * reason, is locked, or belongs to another process.
 */
export const comeBack = statement<{ id: number }>()(
  'session.come_back',
  (p: { id: number } & Holder) => sql`
  update holdfast.session
  set came_back_at = now()
  where id = any(array(
    select id
    from holdfast.session
    where id = ${p.id} and ended_by in ('lease ran out', 'lock gone') and came_back_at is null and ${isOf(p)}
    for update skip locked
  ))
  returning id`,
)

/** Sets whether this session wants to be woken when there are jobs. */
export const wantWake = statement<{ id: number }>()(
  'session.want_wake',
  (p: { id: number; isWanted: boolean }) => sql`
  update holdfast.session
  set wants_wake = ${p.isWanted}::boolean
  where id = ${p.id} and ended_at is null
  returning id`,
)
