import { formatDuration } from '../errors/duration.ts'
import { isSuspect } from '../job/define.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import { formatAhead } from './ahead.ts'
import { ago, isPast, type JobCase, later, type Next, plural, sinceMs, until } from './case.ts'
import type { WorkerFacts } from './facts.ts'
import { limitRules } from './limited.ts'
import { formatSnapshot } from './old-snapshot.ts'
import { formatPause } from './pause.ts'
import type { Rule } from './rule.ts'

const states = ['queued'] as const
const slackMs = 500
/** The `run_at` of jobs whose outcome is parked. */
const parkedAtMs = Date.UTC(9998, 0)

/** A lost wake-up, retry timer or start of the next stage all look the same: the job is due, and no worker has claimed it. */
function classOf({ job, facts }: JobCase): OrphanName {
  if (facts.wait?.sentAt != null) return 'signal-unannounced'
  if (facts.events.findLast(isAboutAttempt)?.type === 'job.snoozed') return 'snooze-timer-died'
  if (job.failures > 0) return 'retry-timer-died'
  if (job.stage > 0 && facts.events.at(-1)?.type === 'job.advanced') return 'next-stage-not-started'
  return 'submitted-unannounced'
}

/** A tenant is not shown the jobs of others, so it can't know how many are ahead of its own. */
const isTurnKnown = ({ facts }: JobCase) => facts.ahead != null

function claimed(c: JobCase): Next {
  if (!isTurnKnown(c)) return { what: 'A worker claims it when its turn comes', byAt: null }
  return { what: 'A worker claims it with its next poll', byAt: later(c, c.config.pollMs + slackMs) }
}

function lane({ job }: JobCase): string {
  return `kind \`${job.kind}\` in queue \`${job.queue}\``
}

function lastSeen(c: JobCase): string {
  const { workers, kind } = c.facts
  const seen = [workers?.lastSeenAt, kind?.seenAt].filter((one) => one != null).sort()
  const latest = seen.at(-1)
  return latest ? `last seen ${ago(c, latest)}` : `none seen in the last ${formatDuration(c.config.kindRetentionMs)}`
}

/** Which rule routed it to its queue, if the workers of its tenant serve another one. */
function formatRule({ job, facts: { kind } }: JobCase): string {
  if (!kind || kind.queue !== job.queue) return ''
  if (kind.tenant) return `; the rule of tenant \`${kind.tenant}\` routed it there`
  if (kind.ownQueue === undefined || kind.ownQueue === kind.queue) return ''
  return `; the rule for all tenants routed it there and overrides the rule of tenant \`${job.tenant}\`, which names queue \`${kind.ownQueue}\``
}

/** What may slow all claims: dead rows that can't be vacuumed. */
function formatHeld({ facts }: JobCase): string {
  const { oldestSnapshot } = facts
  return oldestSnapshot ? `; vacuum is held back by ${formatSnapshot(oldestSnapshot, Date.parse(facts.at))}` : ''
}

/** What keeps a queued job waiting. */
export const queuedRules: readonly Rule<JobCase>[] = [
  {
    code: 'queue-paused',
    states,
    meaning: 'Its queue is paused.',
    orphans: [],
    when: ({ facts }) => facts.queue.pausedAt !== null,
    sentence: (c) =>
      `waiting: queue \`${c.job.queue}\` was paused ${ago(c, c.facts.queue.pausedAt)}${formatPause(c.facts.queue)}`,
    next: () => ({ what: 'Nothing happens until someone resumes the queue', byAt: null }),
    repair: 'resume-queue',
  },
  {
    code: 'outcome-refused',
    states,
    meaning: 'Its attempt has ended, but the database rejects its outcome.',
    orphans: ['outcome-refused'],
    when: ({ job }) => job.runAt !== null && Date.parse(job.runAt) >= parkedAtMs,
    sentence: (c) => `parked: attempt ${c.job.attempt} has ended, but the database rejects its outcome${lastError(c)}`,
    next: () => ({
      what: 'The outcome is written as soon as the database accepts it; the job does not run again',
      byAt: null,
    }),
    repair: 'settle-parked',
  },
  {
    code: 'unclaimable',
    states,
    meaning: 'Something that belongs to it makes every claim fail, so it is left alone for a minute at a time.',
    orphans: ['unclaimable'],
    when: (c) => !isPast(c, c.job.runAt) && c.facts.events.at(-1)?.type === 'job.postponed',
    sentence: (c) =>
      `postponed: it can't be claimed${lastError(c)}; it is tried again in ${until(c, c.job.runAt as string)}`,
    next: dueLater,
    repair: null,
  },
  {
    code: 'waits-for-signal',
    states,
    meaning: 'Its stage waits for a signal.',
    orphans: [],
    when: (c) => !isPast(c, c.job.runAt) && c.facts.wait != null && c.facts.wait.sentAt === null,
    sentence: (c) =>
      `waiting: it waits for the signal \`${c.facts.wait?.signal}\`, for another ${until(c, c.job.runAt as string)}`,
    next: (c) => ({
      what: 'It goes on as soon as the signal is sent; without it, the stage fails with signal_timeout at its timeout',
      byAt: new Date(Date.parse(c.job.runAt as string) + c.config.pollMs + slackMs),
    }),
    repair: null,
  },
  {
    code: 'snoozed',
    states,
    meaning: 'Its handler gave the attempt back until later.',
    orphans: [],
    when: (c) => !isPast(c, c.job.runAt) && c.facts.events.findLast(isAboutAttempt)?.type === 'job.snoozed',
    sentence: (c) =>
      `snoozed: attempt ${c.job.attempt} was given back by its handler; it is due again in ${until(c, c.job.runAt as string)}`,
    next: dueLater,
    repair: null,
  },
  {
    code: 'backing-off',
    states,
    meaning: 'An attempt failed; the job runs again after its backoff.',
    orphans: [],
    when: (c) => !isPast(c, c.job.runAt) && c.job.failures > 0,
    sentence: (c) =>
      `waiting: attempt ${c.job.attempt} failed${lastError(c)}; it is due again in ${until(c, c.job.runAt as string)}`,
    next: dueLater,
    repair: null,
  },
  {
    code: 'scheduled',
    states,
    meaning: 'It is scheduled for a later time.',
    orphans: [],
    when: (c) => !isPast(c, c.job.runAt),
    sentence: (c) => `scheduled: it is due in ${until(c, c.job.runAt as string)}`,
    next: dueLater,
    repair: null,
  },
  {
    code: 'no-worker',
    states,
    meaning: 'No running worker handles its kind in its queue.',
    orphans: ['unknown-kind'],
    when: ({ facts }) => facts.workers?.living === 0,
    sentence: (c) => `waiting: no running worker handles ${lane(c)}; ${lastSeen(c)}${formatRule(c)}`,
    next: () => ({
      what: 'It is never discarded: it is claimed as soon as a worker that handles this kind starts',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'workers-draining',
    states,
    meaning: 'All running workers that handle its kind are draining and no longer claim jobs.',
    orphans: [],
    when: ({ facts: { workers } }) => workers?.claiming === 0,
    sentence: ({ facts: { workers } }) =>
      `waiting: all workers that handle its kind (${workers?.living}) are draining and no longer claim jobs${formatUnresponsive(workers)}`,
    next: () => ({
      what: 'It is claimed as soon as another worker that handles this kind starts; `holdfast work` starts one',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'stage-unknown',
    states,
    meaning: 'It is at a stage that its kind, as last registered, does not have.',
    orphans: [],
    when: ({ facts, job }) => facts.kind !== null && job.stage >= facts.kind.stages,
    sentence: ({ facts, job }) =>
      `waiting: it is at stage ${job.stage + 1}, but kind \`${job.kind}\` was last registered with ${plural(facts.kind?.stages ?? 0, 'stage')}`,
    next: () => ({ what: 'It is claimed as soon as a worker whose kind has that stage starts', byAt: null }),
    repair: null,
  },
  ...limitRules,
  {
    code: 'suspect',
    states,
    meaning: 'It is suspected of killing its workers, so it runs alone in a process.',
    orphans: [],
    when: ({ job }) => isSuspect(job),
    sentence: ({ job }) =>
      `waiting: it has lost ${plural(job.crashes, 'worker')} at this stage and is a suspect, so it runs alone in a process`,
    next: ({ job }) => ({
      what: `An idle worker claims it, or one drains to run it; at ${job.crashBudget} lost workers it is quarantined`,
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'workers-blocked',
    states,
    meaning: 'A handler blocks the event loop of every worker that handles its kind, so none can claim it.',
    orphans: [],
    when: ({ facts: { workers } }) => (workers?.blocked ?? 0) > 0 && workers?.blocked === workers?.claiming,
    sentence: ({ facts: { workers } }) =>
      `waiting: a handler blocks the event loop of all workers that handle its kind (${workers?.claiming}), for up to ${formatDuration(workers?.blockedMs ?? 0)}`,
    next: () => ({
      what: 'It is claimed as soon as such a handler yields to the event loop, or another worker starts',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'workers-busy',
    states,
    meaning: 'All workers that handle its kind are at their concurrency limit.',
    orphans: [],
    when: ({ facts: { workers } }) =>
      workers?.holding != null && Math.max(workers.holding, workers.busy ?? 0) >= workers.concurrency,
    sentence: ({ facts: { workers, ahead } }) =>
      `waiting: all workers that handle its kind (${workers?.living}) are busy with ${plural(workers?.holding ?? 0, 'job')}${formatLeftover(workers)}${formatAhead(ahead)}`,
    next: () => ({
      what: 'It is claimed when its turn comes; add workers or raise the concurrency to speed this up',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'in-line',
    states,
    meaning: 'Other due jobs of its kind are ahead of it.',
    orphans: [],
    when: ({ facts }) => (facts.ahead ?? 0) > 0,
    sentence: ({ facts }) => `waiting: its turn has not come${formatAhead(facts.ahead)}`,
    next: () => ({ what: 'It is claimed when its turn comes', byAt: null }),
    repair: null,
  },
  {
    code: 'overdue',
    states,
    meaning:
      'It is due and a worker is free, but no worker has claimed it: a wake-up was lost, and the next poll is still to come.',
    orphans: [
      'submitted-unannounced',
      'retry-timer-died',
      'snooze-timer-died',
      'signal-unannounced',
      'next-stage-not-started',
    ],
    orphan: classOf,
    when: (c) => isTurnKnown(c) && (sinceMs(c, c.job.runAt) ?? 0) > c.config.pollMs + slackMs,
    sentence: (c) =>
      `waiting: it has been due for ${formatDuration(sinceMs(c, c.job.runAt) ?? 0)}, with ${plural(c.facts.workers?.living ?? 0, 'live worker')} that could claim it${formatHeld(c)}`,
    next: claimed,
    repair: 'wake',
  },
  {
    code: 'due',
    states,
    meaning: 'It is due and about to be claimed.',
    orphans: [],
    when: () => true,
    sentence: (c) =>
      `waiting: it became due ${ago(c, c.job.runAt)}, and ${plural(c.facts.workers?.living ?? 0, 'live worker')} may claim it`,
    next: claimed,
    repair: null,
  },
]

/** Handlers that still run although their jobs were cancelled or reassigned. */
function formatLeftover(workers: WorkerFacts | null): string {
  const leftover = (workers?.busy ?? 0) - (workers?.holding ?? 0)
  if (leftover <= 0) return ''
  return ` and ${plural(leftover, 'handler')} of jobs that they no longer own`
}

function formatUnresponsive(workers: WorkerFacts | null): string {
  const count = workers?.unresponsive ?? 0
  return count === 0 ? '' : `; ${plural(count, 'handler')} ignored ${count === 1 ? 'its' : 'their'} abort signal`
}

function dueLater({ job, facts, config }: JobCase): Next {
  const dueAtMs = Date.parse(job.runAt as string)
  const byAt = new Date(dueAtMs + config.pollMs + slackMs)
  if (facts.workers?.living === 0) return { what: 'It becomes due, but no running worker handles its kind', byAt: null }
  return { what: 'It becomes due, and a worker claims it', byAt }
}

/** Whether an event says how the last attempt ended. */
function isAboutAttempt({ type }: { type: string }): boolean {
  return ['job.snoozed', 'job.retried', 'job.released', 'job.revived', 'job.advanced', 'job.redone'].includes(type)
}

function lastError({ facts }: JobCase): string {
  const data = facts.events.findLast(({ type }) => ['job.retried', 'job.parked', 'job.postponed'].includes(type))
    ?.data as { error?: { message?: unknown } } | null | undefined
  const message = data?.error?.message
  return typeof message === 'string' ? ` (${message})` : ''
}
