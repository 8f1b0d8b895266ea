import type { State } from '../job/machine.ts'
import type { LimitFacts } from './limit-facts.ts'
import type { SnapshotFacts } from './old-snapshot.ts'
import type { ScheduledFacts } from './scheduled-facts.ts'

/** How many jobs ahead of another are counted. */
export const mostAhead = 1000
/** How many items or parts of a ledger are counted. */
export const mostCounted = 20_000

/** A moment by the clock of the database, in ISO 8601. */
export type Moment = string

/** The job's row, live or finished. */
export interface JobFacts {
  id: string
  kind: string
  queue: string
  tenant: string
  state: State
  stage: number
  attempt: number
  failures: number
  crashes: number
  crashBudget: number
  priority: number
  submittedAt: Moment
  runAt: Moment | null
  deadlineAt: Moment | null
  sessionId: number | null
  finishedAt: Moment | null
  isFlawed: boolean
  error: { code: string | null; message: string | null } | null
}

/** The session that holds it, or the last one that an event names. */
export interface SessionFacts {
  id: number
  startedAt: Moment
  heartbeatAt: Moment
  leaseUntil: Moment
  lostAfterMs: number
  endedAt: Moment | null
  endedBy: string | null
  /** The signal or exit code of its process, if a supervisor saw it. */
  exit?: string
  /** Whether the session acquired its lock after the server started. */
  canTellLock: boolean
  /** Null in a snapshot. */
  isLocked: boolean | null
  /** Whether it belongs to a remote worker, which chooses the length of its lease and has no lock. */
  isRemote?: boolean
  /** For how long a handler had blocked its event loop at its last heartbeat; 0 if none did. */
  blockedMs?: number
  concurrency?: number
  host?: string
  pid?: number
  version?: string
}

/** The sessions that handle its kind in its queue. */
export interface WorkerFacts {
  living: number
  concurrency: number
  /** How many jobs they hold, started or not; null if there are none. */
  holding?: number | null
  lastSeenAt: Moment | null
  /** How many of them claim jobs: those that drain do not. */
  claiming?: number
  /** How many handlers they run, including those of jobs that they no longer hold. */
  busy?: number
  /** How many of their handlers ignore their abort signal. */
  unresponsive?: number
  /** How many of those that claim have a blocked event loop, and for how long at most. */
  blocked?: number
  blockedMs?: number
}

/** A handler that ignores its abort signal and still runs. */
export interface HandlerFacts {
  sessionId: number
  attempt: number
  stage: string
  reason: string
  since: Moment
  host?: string
  pid?: number
}

/** The items of a barrier, counted. */
export interface LedgerFacts {
  queued: number
  running: number
  waiting: number
  succeeded: number
  failed: number
  cancelled: number
  /** False if there are more than `mostCounted`. */
  isWhole: boolean
}

/** A barrier that it opened. */
export interface BarrierFacts {
  id: string
  stage: number
  openedAt: Moment
  sealedAt: Moment | null
  armedAt: Moment | null
  joinedAt: Moment | null
  stoppedAt: Moment | null
  expiresAt: Moment | null
  extended: number
  movedAt: Moment
  total: number | null
  succeeded: number
  failed: number
  cancelled: number
  /** Whether one of its items is live. */
  hasLive: boolean
  ledger: LedgerFacts | null
  stragglers:
    | {
        id: string
        key: string | null
        state: State
        attempt: number
        crashes: number
        deadlineAt: Moment | null
      }[]
    | null
}

/** The barrier that it is an item of. */
export interface ItemFacts {
  barrierId: string
  position: number | null
  isThere: boolean
  jobId: string | null
  stage: number | null
  total: number | null
  succeeded: number | null
  failed: number | null
  cancelled: number | null
  joinedAt: Moment | null
  stoppedAt: Moment | null
  expiresAt: Moment | null
  parentState: State | null
}

/** The barrier that it is the continuation of. */
export interface OwnedFacts {
  id: string
  tenant: string | null
  kind: string
  total: number
  arrived: number
  /** How many parts have arrived, by the ledger. */
  ledger: number
  openedAt: Moment
  armedAt: Moment
  isRearmed: boolean
  expiresAt: Moment | null
  dueAt: Moment | null
  asks: number
  firedAt: Moment | null
  expiredAt: Moment | null
  owner: string | null
  execution: string | null
  /** If it was removed after its expiry: whether its execution was marked failed, had ended, or was gone. */
  endedBy?: 'marked' | 'ended' | 'gone'
}

/** How far a group has read in the partition of this job. Positions in the log are shown only to callers that see all tenants. */
export interface GroupFacts {
  name: string
  seq?: number
  /** The last event of this job that the group wants. */
  wantedSeq?: number | null
  /** Whether it has not read every event of this job that it wants; omitted if the positions are shown. */
  isBehind?: boolean
  hasReader: boolean
  readerUntil: Moment | null
  movedAt?: Moment
  crashes: number
  failingSeq?: number | null
  failures?: number
  error?: string | null
  isParked: boolean
}

/** The webhooks about it. */
export interface DeliveryFacts {
  pending: number
  delivered: number
  dead: number
  oldestPending: {
    id: string
    type: string
    nextAt: Moment
    claimedAt: Moment | null
    tries: number
    failures: number
    error: string | null
    isOff: boolean
  } | null
  lastDead: {
    id: string
    type: string
    error: string | null
    status: number | null
    endedAt: Moment
    isOff: boolean
  } | null
}

/** Its kind, by the rule that applies to its tenant. */
export interface KindFacts {
  stages: number
  /** The names of its stages. */
  names?: string[]
  queue: string
  seenAt: Moment
  /** The tenant whose rule it is; null for the rule for all tenants, which takes precedence. */
  tenant?: string | null
  /** The queue that the rule of its own tenant names, if the rule for all tenants overrides it. */
  ownQueue?: string
}

/**
 * What every source of truth says about a job. Without `job`, it is the continuation of a barrier that has not fired. Snapshots of older
 * versions are read too, so a member that is added later is optional.
 */
export interface Facts {
  at: Moment
  job: JobFacts | null
  kind: KindFacts | null
  outputs: { stage: number; name: string; attempt: number; at: Moment }[]
  progress: { stage: number; attempt: number; done: number; total: number | null; at: Moment } | null
  session: SessionFacts | null
  queue: { name: string | null; pausedAt: Moment | null; pausedBy?: string; reason?: string }
  workers: WorkerFacts | null
  /** Handlers of earlier attempts that still run. */
  unresponsive?: HandlerFacts[]
  /** The signal that it waits for, if it has reached such a stage. */
  wait?: { signal: string; since: Moment; until: Moment; closedAt: Moment | null; sentAt: Moment | null } | null
  /** The unique key that it was submitted with, and the job that holds it, if the key still leads to it. */
  unique?: { key: string; until: Moment | null } | null
  /** The bulk operation that changed it last. */
  bulk?: { id: string; operation: string; state: string; nextAt: Moment; leaseUntil: Moment } | null
  /** The limits that apply to it, if it waits at a gate. */
  limit?: LimitFacts | null
  /** How many due jobs of its kind are ahead of it; `mostAhead` stands for that many or more. */
  ahead?: number | null
  barriers: BarrierFacts[]
  itemOf: ItemFacts | null
  continues: OwnedFacts | null
  /** The schedule and the slot that it was submitted for; omitted if there is none. */
  scheduled?: ScheduledFacts | null
  events: {
    /** Its position in the log, shown only to callers that see all tenants. */
    seq?: number
    at: Moment
    type: string
    state: State | null
    attempt: number
    stage: number
    sessionId: number | null
    data: unknown
  }[]
  groups: GroupFacts[]
  deliveries: DeliveryFacts | null
  /** The oldest transaction that has written: readers of events wait for it. */
  oldestWriter: { pid?: number; since: Moment; application?: string } | null
  /** The oldest open snapshot, which keeps Postgres from vacuuming dead rows. */
  oldestSnapshot?: SnapshotFacts | null
  leader: {
    term: number
    holder?: string
    renewedAt: Moment
    leaseUntil: Moment
    sweptAt: Moment | null
    sweepMs?: number | null
  } | null
  refusals: { at: Moment; attempt: number; sessionId: number; write: string }[]
}

/** Whether a group has not read all events of a job that it wants. */
export function isBehind({ seq, wantedSeq, isBehind: told }: GroupFacts): boolean {
  return told ?? (wantedSeq ?? 0) > (seq ?? 0)
}
