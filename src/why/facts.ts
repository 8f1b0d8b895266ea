import type { State } from '../job/machine.ts'

/** How many jobs are counted that go before another. */
export const mostAhead = 1000

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

/** The session of its attempt, or of the last one that an event tells of. */
export interface SessionFacts {
  id: number
  startedAt: Moment
  heartbeatAt: Moment
  leaseUntil: Moment
  lostAfterMs: number
  endedAt: Moment | null
  endedBy: string | null
  /** The signal or the code with which its process ended, if a supervisor saw it. */
  exit?: string
  /** Whether the server that runs is the one on which the session took its lock. */
  canTellLock: boolean
  /** Null if nobody looked. */
  isLocked: boolean | null
  /** Whether its worker speaks HTTP, and so has a lease of its own length and no lock. */
  isRemote?: boolean
  /** How long a handler had blocked its event loop at its last heartbeat; 0 if none does. */
  blockedMs?: number
  concurrency?: number
  host?: string
  pid?: number
  version?: string
}

/** The sessions that serve its kind in its queue. */
export interface WorkerFacts {
  living: number
  concurrency: number
  /** How many jobs they hold, started or not; null if nobody counted. */
  holding?: number | null
  lastSeenAt: Moment | null
  /** How many of the living claim jobs: those that drain do not. */
  claiming?: number
  /** How many handlers they run, also of jobs that they no longer hold. */
  busy?: number
  /** How many of their handlers ignored their signal and still run. */
  unresponsive?: number
  /** How many of those that claim have a blocked event loop, and for how long at most. */
  blocked?: number
  blockedMs?: number
}

/** A handler of an attempt that was given up: it ignored its signal and still runs. */
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
  /** False if there are more than are counted for an answer. */
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
  /** Whether an item of it is live. */
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

/** The barrier of its own whose continuation it is. */
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
  /** If it was removed at its expiry: whether its execution was marked failed, had ended, or was gone. */
  endedBy?: 'marked' | 'ended' | 'gone'
}

/** How far a group of readers is in the partition of this job. Places in the log are for whoever sees all tenants. */
export interface GroupFacts {
  name: string
  seq?: number
  /** The last event of this job that the group wants. */
  wantedSeq?: number | null
  /** Whether it has not read every event of this job that it wants; left out where the places tell it. */
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

/** What is sent about it. */
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

/** Its kind, as the rule that applies to its tenant says. */
export interface KindFacts {
  stages: number
  /** Those of its stages. */
  names?: string[]
  queue: string
  seenAt: Moment
  /** Whose rule it is; null if it is for all tenants, and so comes before that of any one. */
  tenant?: string | null
  /** The queue that the rule of its own tenant names, if one for all tenants comes before that. */
  ownQueue?: string
}

/** What every source of truth says about a job. Without a job: it is the continuation of a barrier that has not fired. */
export interface Facts {
  at: Moment
  job: JobFacts | null
  kind: KindFacts | null
  outputs: { stage: number; name: string; attempt: number; at: Moment }[]
  progress: { stage: number; attempt: number; done: number; total: number | null; at: Moment } | null
  session: SessionFacts | null
  queue: { name: string | null; pausedAt: Moment | null; pausedBy?: string; reason?: string }
  workers: WorkerFacts | null
  /** Handlers of its attempts that were given up and still run. */
  unresponsive?: HandlerFacts[]
  /** How many due jobs of its kind go before it; `mostAhead` stands for that many or more. */
  ahead?: number | null
  barriers: BarrierFacts[]
  itemOf: ItemFacts | null
  continues: OwnedFacts | null
  events: {
    /** Its place in the log, for whoever sees all tenants. */
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
  /** The oldest transaction that writes: readers of events wait for it. */
  oldestWriter: { pid?: number; since: Moment; application?: string } | null
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

/** Whether a group has still to read of a job. */
export function isBehind({ seq, wantedSeq, isBehind: told }: GroupFacts): boolean {
  return told ?? (wantedSeq ?? 0) > (seq ?? 0)
}

/**
 * Facts as a tenant may see them: nothing of the machines that serve all tenants, nothing that counts the jobs of others, and no places in the log, for
 * their numbers grow with what others do.
 */
export function forTenant(facts: Facts): Facts {
  const { ahead: _ahead, ...rest } = facts
  return {
    ...rest,
    session: facts.session && without(facts.session, ['host', 'pid', 'version', 'concurrency']),
    queue: without(facts.queue, ['pausedBy', 'reason']),
    workers: facts.workers && without(facts.workers, ['holding', 'busy', 'unresponsive', 'blocked', 'blockedMs']),
    ...(facts.unresponsive && { unresponsive: facts.unresponsive.map((one) => without(one, ['host', 'pid'])) }),
    leader: facts.leader && without(facts.leader, ['holder', 'sweepMs']),
    oldestWriter: facts.oldestWriter && { since: facts.oldestWriter.since },
    events: facts.events.map((event) => without(event, ['seq'])),
    groups: facts.groups.filter(({ name }) => name === 'webhooks').map(groupForTenant),
  }
}

/** What fails in the group at this moment, and when it last moved, may be about the event of another. */
function groupForTenant(group: GroupFacts): GroupFacts {
  const hidden = ['seq', 'wantedSeq', 'failingSeq', 'failures', 'error', 'movedAt']
  return { ...without(group, hidden), isBehind: isBehind(group) }
}

function without<T extends object>(whole: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name))) as T
}
