import { lengthWords } from '../job/length.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import {
  ago,
  barrierOf,
  beatMs,
  byRung,
  bySweep,
  isLed,
  isPast,
  type JobCase,
  leaderWords,
  type Next,
  sinceMs,
  stageWords,
} from './case.ts'
import type { SessionFacts } from './facts.ts'
import type { Rule } from './rule.ts'

const states = ['running'] as const
/** From this many missed heartbeats on, one wonders; the lease of a remote worker has no more than three. */
const missedBeats = ({ facts }: JobCase) => (facts.session?.isRemote ? 2 : 3)

/** What gives a dead worker away; null if nothing does. */
export function lossOf(c: JobCase): 'session row gone' | 'ended' | 'lease ran out' | 'lock gone' | null {
  const { session } = c.facts
  if (!session) return 'session row gone'
  if (session.endedAt) return 'ended'
  if (isPast(c, session.leaseUntil)) return 'lease ran out'
  return hasLostLock(c, session) ? 'lock gone' : null
}

/** As the leader sees it: a session that merely reconnects has no lock either, so the heartbeat must be old as well. */
function hasLostLock(c: JobCase, { canTellLock, isLocked, heartbeatAt, lostAfterMs }: SessionFacts): boolean {
  return canTellLock && isLocked === false && (sinceMs(c, heartbeatAt) ?? 0) > lostAfterMs
}

function lossWords(c: JobCase): string {
  const { session } = c.facts
  if (!session) return `session ${c.job.sessionId}, which holds it, does not exist`
  const heard = `it was last heard of ${ago(c, session.heartbeatAt)}`
  if (session.endedAt)
    return `session ${session.id}, which holds it, ended ${ago(c, session.endedAt)} (${[session.endedBy ?? 'unknown', session.exit].filter(Boolean).join(', ')})`
  if (isPast(c, session.leaseUntil))
    return `the lease of session ${session.id} ran out ${ago(c, session.leaseUntil)}; ${heard}`
  return `the process of session ${session.id} is gone, and its lock with it; ${heard}`
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
  return isSpent ? 'It is quarantined, for its crash budget is spent' : 'It is put back in its queue, and claimed anew'
}

/** A worker that merely fell silent may come back, so a job on its last life waits for a second lease. */
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

/** What a running job does, or what has become of its worker. */
export const runningRules: readonly Rule<JobCase>[] = [
  {
    code: 'nobody-leads',
    states,
    meaning: 'Its worker is lost, and nobody leads who could give it back.',
    orphans: ['leader-hangs'],
    when: (c) => lossOf(c) !== null && !isLed(c),
    sentence: (c) => `lost: ${lossWords(c)}; and ${leaderWords(c)}`,
    next: (c) => ({ what: `${revived(c)}, as soon as a process leads: any worker, or \`holdfast reap\``, byAt: null }),
    repair: 'revive',
  },
  {
    code: 'session-gone',
    states,
    meaning: 'Its session does not exist.',
    orphans: ['session-row-gone'],
    when: (c) => lossOf(c) === 'session row gone',
    sentence: (c) => `lost: ${lossWords(c)}`,
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
    sentence: (c) => `lost: ${lossWords(c)}`,
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
    sentence: (c) => `lost: ${lossWords(c)}`,
    next: lostWith('lease ran out'),
    repair: 'revive',
  },
  {
    code: 'lock-gone',
    states,
    meaning: 'The process of its session is gone: its lock is, and its heartbeat is old.',
    orphans: deadClasses,
    orphan: classOf,
    when: (c) => lossOf(c) === 'lock gone',
    sentence: (c) => `lost: ${lossWords(c)}`,
    next: lostWith('lock gone'),
    repair: 'revive',
  },
  {
    code: 'deadline-passed',
    states,
    meaning:
      'Its deadline has passed although its worker lives: the handler hangs, or its outcome could not be written.',
    orphans: ['hung-handler', 'finish-failed-worker-lives'],
    when: (c) => isPast(c, c.job.deadlineAt),
    sentence: (c) =>
      `hung: its deadline passed ${ago(c, c.job.deadlineAt)}, although session ${c.job.sessionId} lives; its handler blocks, or its outcome cannot be written`,
    next: (c) => bySweep(c, `${revived(c)}; whatever its handler still writes is refused`),
    repair: 'revive',
  },
  {
    code: 'heartbeat-late',
    states,
    meaning: 'Its worker has missed several heartbeats, and is not given up yet.',
    orphans: [],
    when: (c) => (sinceMs(c, c.facts.session?.heartbeatAt) ?? 0) > missedBeats(c) * beatMs(c),
    sentence: (c) =>
      `running, but session ${c.job.sessionId} was last heard of ${ago(c, c.facts.session?.heartbeatAt)}${lockWords(c.facts.session)}`,
    next: (c) => ({
      what: 'Its worker is heard of again, or its lease runs out and it is put back in its queue',
      byAt: byRung(c, 'lease ran out'),
    }),
    repair: null,
  },
  {
    code: 'worker-blocked',
    states,
    meaning: 'A handler blocks the event loop of its worker, so that nothing else moves there.',
    orphans: [],
    when: ({ facts }) => (facts.session?.blockedMs ?? 0) > 0,
    sentence: (c) =>
      `running on session ${c.job.sessionId}, whose event loop a handler has blocked for ${lengthWords(c.facts.session?.blockedMs ?? 0)}`,
    next: (c) => ({
      what: 'If this job has not started, it is given back; else it goes on when the handler lets go, or is taken for hung at its deadline',
      byAt: new Date(Date.parse(c.job.deadlineAt as string) + c.config.sweepMs + c.config.pollMs + 500),
    }),
    repair: null,
  },
  {
    code: 'running',
    states,
    meaning: 'It runs, and its worker is well.',
    orphans: [],
    when: () => true,
    sentence: (c) =>
      `running: attempt ${c.job.attempt} at ${stageWords(c, c.job.stage)}, on session ${c.job.sessionId}, which was heard of ${ago(c, c.facts.session?.heartbeatAt)}${progressWords(c)}`,
    next: (c) => ({
      what: 'It ends; if not, it is taken for hung at its deadline and put back in its queue',
      byAt: new Date(Date.parse(c.job.deadlineAt as string) + c.config.sweepMs + c.config.pollMs + 500),
    }),
    repair: null,
  },
]

function lockWords(session: SessionFacts | null): string {
  if (session?.isLocked == null || !session.canTellLock) return ''
  return session.isLocked ? '; its process still holds its lock' : '; its lock is gone'
}

function progressWords({ facts: { progress, at }, job }: JobCase): string {
  if (!progress || progress.attempt !== job.attempt) return ''
  const age = lengthWords(Date.parse(at) - Date.parse(progress.at))
  return `; progress ${progress.done}${progress.total === null ? '' : `/${progress.total}`}, told ${age} ago`
}
