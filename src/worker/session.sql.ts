import { sessionLockClass } from '../store/locks.ts'
import { sql, statement } from '../store/sql.ts'
import { freshVitals, type UnresponsiveHandler, type Vitals } from './vitals.ts'

/** What a session says about itself. */
export interface SessionFacts {
  pid: number
  host: string
  supervisor: string | null
  version: string
  /** What it serves: each kind, and at the same place the queue that it is served in. */
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

/** Takes the session's lock on this connection; it goes when the connection goes. */
export const lockSession = statement<{ is_locked: boolean; backend: number }>()(
  'session.lock',
  (p: { id: number }) => sql`
  select pg_try_advisory_lock(${sessionLockClass}::int, ${p.id}::int) as is_locked, pg_backend_pid() as backend`,
)

/** A heartbeat: the renewal of the lease, and how the process is. */
export interface Beat {
  id: number
  isLocked: boolean
  leaseMs: number
  vitals?: Vitals
  /** The first of the handlers that ignore their signal. */
  unresponsive?: UnresponsiveHandler[]
}

/** Renews the lease, and names the backend that did. No row back: the session was ended, and all its attempts were given away. */
export const beat = statement<{ id: number; lease_until: Date; backend: number }>()(
  'session.beat',
  ({ vitals = freshVitals, unresponsive = [], ...p }: Beat) => sql`
  update holdfast.session
  set heartbeat_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
    locked_on = case when ${p.isLocked}::boolean then pg_postmaster_start_time() end,
    is_claiming = ${vitals.isClaiming}::boolean, busy = ${vitals.busy}::int, blocked_ms = ${vitals.blockedMs}::int,
    unresponsive = ${vitals.unresponsive}::int,
    unresponsive_handlers = ${unresponsive.length === 0 ? null : JSON.stringify(unresponsive)}::json
  where id = ${p.id} and ended_at is null
  returning id, lease_until, pg_backend_pid() as backend`,
)

/** Ends a session that holds nothing any more. */
export const closeSession = statement<{ id: number }>()(
  'session.close',
  (p: { id: number }) => sql`
  update holdfast.session
  set ended_at = now(), ended_by = 'itself', wants_wake = false
  where id = ${p.id} and ended_at is null
  returning id`,
)

/**
 * Says that the worker of an ended session lives: what it lost was nobody's crash. Only for a session that was ended for its silence, and
 * once: no other process knows its id. No row back: it was not ended yet, or not for that, or somebody holds it.
 */
export const comeBack = statement<{ id: number }>()(
  'session.come_back',
  (p: { id: number }) => sql`
  update holdfast.session
  set came_back_at = now()
  where id = any(array(
    select id
    from holdfast.session
    where id = ${p.id} and ended_by in ('lease ran out', 'lock gone') and came_back_at is null
    for update skip locked
  ))
  returning id`,
)

/** Says whether this session wants to be woken when there is work. */
export const wantWake = statement<{ id: number }>()(
  'session.want_wake',
  (p: { id: number; isWanted: boolean }) => sql`
  update holdfast.session
  set wants_wake = ${p.isWanted}::boolean
  where id = ${p.id} and ended_at is null
  returning id`,
)
