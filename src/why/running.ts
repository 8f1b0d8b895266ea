import { formatDuration } from '../errors/duration.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import {
  ago,
  barrierOf,
  beatMs,
  byRung,
  bySweep,
  formatLeader,
  formatStage,
  isLed,
  isPast,
  type JobCase,
  type Next,
  sinceMs,
} from './case.ts'
import type { SessionFacts } from './facts.ts'
import type { Rule } from './rule.ts'

const states = ['running'] as const
/** From this many missed heartbeats on, a heartbeat is reported as late; the lease of a remote worker covers only three. */
const missedBeats = ({ facts }: JobCase) => (facts.session?.isRemote ? 2 : 3)

/** How the worker was lost; null if it was not. */
export function lossOf(c: JobCase): 'session row gone' | 'ended' | 'lease ran out' | 'lock gone' | null {
  const { session } = c.facts
  if (!session) return 'session row gone'
  if (session.endedAt) return 'ended'
  if (isPast(c, session.leaseUntil)) return 'lease ran out'
  return hasLostLock(c, session) ? 'lock gone' : null
}

/** As the leader decides it: a session that reconnects has no lock for a moment, so the heartbeat must be old as well. */
function hasLostLock(c: JobCase, { canTellLock, isLocked, heartbeatAt, lostAfterMs }: SessionFacts): boolean {
  return canTellLock && isLocked === false && (sinceMs(c, heartbeatAt) ?? 0) > lostAfterMs
}

function formatLoss(c: JobCase): string {
  const { session } = c.facts
  if (!session) return `session ${c.job.sessionId}, which holds it, does not exist`
  const heard = `its last heartbeat was ${ago(c, session.heartbeatAt)}`
  if (session.endedAt)
    return `session ${session.id}, which holds it, ended ${ago(c, session.endedAt)} (${[session.endedBy ?? 'unknown', session.exit].filter(Boolean).join(', ')})`
  if (isPast(c, session.leaseUntil))
    return `the lease of session ${session.id} ran out ${ago(c, session.leaseUntil)}; ${heard}`
  return `the process and lock of session ${session.id} are gone; ${heard}`
}

/** The class of an attempt whose session is dead. */
function classOf(c: JobCase): OrphanName {
  const barrier = barrierOf(c)
  if (barrier && barrier.sealedAt === null) return 'fan-out-unsealed'
  if (c.facts.session?.endedBy === 'itself') return 'claimed-by-ended-session'
  return c.job.stage > 0 ? 'later-stage-dead-session' : 'running-dead-session'
}

function revived({ job }: JobCase): string {
  const isSpent = job.crashes + 1 >= job.crashBudget
  return isSpent
    ? 'It is quarantined because its crash budget is exhausted'
    : 'It returns to its queue and is claimed again'
}

/** A silent worker may come back, so a job that would be quarantined waits for the length of a second lease. */
function notBefore(c: JobCase, byAt: Next['byAt']): Next['byAt'] {
  const { session } = c.facts
  const isSilent = session && (session.endedBy === null || ['lease ran out', 'lock gone'].includes(session.endedBy))
  if (!isSilent || !byAt || c.job.crashes + 1 < c.job.crashBudget) return byAt
  const leaseUntilMs = Date.parse(session.leaseUntil)
  const givenUpMs = 2 * leaseUntilMs - Date.parse(session.heartbeatAt) + c.config.sweepMs + c.config.pollMs + 500
  return new Date(Math.max(byAt.getTime(), givenUpMs))
}

function lostWith(rung: 'lock gone' | 'lease ran out') {
  return (c: JobCase): Next => ({ what: revived(c), byAt: notBefore(c, byRung(c, rung)) })
}

const deadClasses = [
  'running-dead-session',
  'later-stage-dead-session',
  'claimed-by-ended-session',
  'fan-out-unsealed',
] as const satisfies readonly OrphanName[]

/** What a running job is doing, or how its worker was lost. */
export const runningRules: readonly Rule<JobCase>[] = [
  {
    code: 'nobody-leads',
    states,
    meaning: 'Its worker is lost, and there is no leader to revive it.',
    orphans: ['leader-hangs'],
    when: (c) => lossOf(c) !== null && !isLed(c),
    sentence: (c) => `lost: ${formatLoss(c)}; and ${formatLeader(c)}`,
    next: (c) => ({
      what: `${revived(c)} once a process becomes leader: any worker, or \`holdfast reap\``,
      byAt: null,
    }),
    repair: 'revive',
  },
  {
    code: 'session-gone',
    states,
    meaning: 'Its session does not exist.',
    orphans: ['session-row-gone'],
    when: (c) => lossOf(c) === 'session row gone',
    sentence: (c) => `lost: ${formatLoss(c)}`,
    next: (c) => bySweep(c, revived(c)),
    repair: 'revive',
  },
  {
    code: 'session-ended',
    states,
    meaning: 'Its session has ended.',
    orphans: deadClasses,
    orphan: classOf,
    when: (c) => lossOf(c) === 'ended',
    sentence: (c) => `lost: ${formatLoss(c)}`,
    next: (c) => {
      const { what, byAt } = bySweep(c, revived(c))
      return { what, byAt: notBefore(c, byAt) }
    },
    repair: 'revive',
  },
  {
    code: 'lease-out',
    states,
    meaning: 'The lease of its session has run out.',
    orphans: deadClasses,
    orphan: classOf,
    when: (c) => lossOf(c) === 'lease ran out',
    sentence: (c) => `lost: ${formatLoss(c)}`,
    next: lostWith('lease ran out'),
    repair: 'revive',
  },
  {
    code: 'lock-gone',
    states,
    meaning: 'The process of its session is gone: its lock is released, and its heartbeat is old.',
    orphans: deadClasses,
    orphan: classOf,
    when: (c) => lossOf(c) === 'lock gone',
    sentence: (c) => `lost: ${formatLoss(c)}`,
    next: lostWith('lock gone'),
    repair: 'revive',
  },
  {
    code: 'deadline-passed',
    states,
    meaning:
      'Its deadline has passed while its worker is alive: the handler hangs, or its outcome could not be written.',
    orphans: ['hung-handler', 'finish-failed-worker-lives'],
    when: (c) => isPast(c, c.job.deadlineAt),
    sentence: (c) =>
      `hung: its deadline passed ${ago(c, c.job.deadlineAt)}, but session ${c.job.sessionId} is alive; its handler blocks, or its outcome cannot be written`,
    next: (c) => bySweep(c, `${revived(c)}; late writes of its handler are refused`),
    repair: 'revive',
  },
  {
    code: 'heartbeat-late',
    states,
    meaning: 'Its worker has missed several heartbeats, but does not count as dead yet.',
    orphans: [],
    when: (c) => (sinceMs(c, c.facts.session?.heartbeatAt) ?? 0) > missedBeats(c) * beatMs(c),
    sentence: (c) =>
      `running, but the last heartbeat of session ${c.job.sessionId} was ${ago(c, c.facts.session?.heartbeatAt)}${formatLock(c.facts.session)}`,
    next: (c) => ({
      what: 'Its worker sends a heartbeat, or its lease runs out and the job returns to its queue',
      byAt: byRung(c, 'lease ran out'),
    }),
    repair: null,
  },
  {
    code: 'worker-blocked',
    states,
    meaning: 'A handler blocks the event loop of its worker, so nothing else runs there.',
    orphans: [],
    when: ({ facts }) => (facts.session?.blockedMs ?? 0) > 0,
    sentence: (c) =>
      `running on session ${c.job.sessionId}, whose event loop a handler has blocked for ${formatDuration(c.facts.session?.blockedMs ?? 0)}`,
    next: (c) => ({
      what: 'If this job has not started, it is released; otherwise it continues once the handler yields, or counts as hung at its deadline',
      byAt: new Date(Date.parse(c.job.deadlineAt as string) + c.config.sweepMs + c.config.pollMs + 500),
    }),
    repair: null,
  },
  {
    code: 'running',
    states,
    meaning: 'It is running, and its worker is healthy.',
    orphans: [],
    when: () => true,
    sentence: (c) =>
      `running: attempt ${c.job.attempt} at ${formatStage(c, c.job.stage)}, on session ${c.job.sessionId}, last heartbeat ${ago(c, c.facts.session?.heartbeatAt)}${formatProgress(c)}`,
    next: (c) => ({
      what: 'It ends; otherwise it counts as hung at its deadline and returns to its queue',
      byAt: new Date(Date.parse(c.job.deadlineAt as string) + c.config.sweepMs + c.config.pollMs + 500),
    }),
    repair: null,
  },
]

function formatLock(session: SessionFacts | null): string {
  if (session?.isLocked == null || !session.canTellLock) return ''
  return session.isLocked ? '; its process still holds its lock' : '; its lock is gone'
}

function formatProgress({ facts: { progress, at }, job }: JobCase): string {
  if (!progress || progress.attempt !== job.attempt) return ''
  const age = formatDuration(Date.parse(at) - Date.parse(progress.at))
  return `; progress ${progress.done}${progress.total === null ? '' : `/${progress.total}`}, reported ${age} ago`
}
