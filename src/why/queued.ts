import { isSuspect } from '../job/define.ts'
import { lengthWords } from '../job/length.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import { ago, isPast, type JobCase, later, type Next, plural, sinceMs, until } from './case.ts'
import { mostAhead, type WorkerFacts } from './facts.ts'
import type { Rule } from './rule.ts'

const states = ['queued'] as const
const slackMs = 500
/** When the jobs fall due that wait for their outcomes to be written. */
const parkedAtMs = Date.UTC(9998, 0)

/** A wake-up, a timer or the start of a next stage that was lost shows only in this: it is due, and nobody has come. */
function classOf({ job, facts }: JobCase): OrphanName {
  if (job.failures > 0) return 'retry-timer-died'
  if (job.stage > 0 && facts.events.at(-1)?.type === 'job.advanced') return 'next-stage-not-started'
  return 'submitted-unannounced'
}

/** A tenant is not told of the jobs of others, so neither that they go before its own. */
const isTurnKnown = ({ facts }: JobCase) => facts.ahead != null

function claimed(c: JobCase): Next {
  if (!isTurnKnown(c)) return { what: 'A worker claims it when its turn comes', byAt: null }
  return { what: 'The next poll of a worker claims it', byAt: later(c, c.config.pollMs + slackMs) }
}

function lane({ job }: JobCase): string {
  return `kind \`${job.kind}\` in queue \`${job.queue}\``
}

function lastSeen(c: JobCase): string {
  const { workers, kind } = c.facts
  const seen = [workers?.lastSeenAt, kind?.seenAt].filter((one) => one != null).sort()
  const latest = seen.at(-1)
  return latest ? `last seen ${ago(c, latest)}` : `none was seen in the last ${lengthWords(c.config.kindRetentionMs)}`
}

/** Whose rule sent it to its queue, if the workers of its tenant wait for it in another. */
function ruleWords({ job, facts: { kind } }: JobCase): string {
  if (!kind || kind.queue !== job.queue) return ''
  if (kind.tenant) return `; the rule of tenant \`${kind.tenant}\` put it there`
  if (kind.ownQueue === undefined || kind.ownQueue === kind.queue) return ''
  return `; the rule for all tenants put it there, before that of tenant \`${job.tenant}\`, which names queue \`${kind.ownQueue}\``
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
      `waiting: queue \`${c.job.queue}\` was paused ${ago(c, c.facts.queue.pausedAt)}${pauseWords(c.facts.queue)}`,
    next: () => ({ what: 'Nothing, until somebody resumes the queue', byAt: null }),
    repair: 'resume-queue',
  },
  {
    code: 'outcome-refused',
    states,
    meaning: 'Its work is done, and the database refuses to write how it ended.',
    orphans: ['outcome-refused'],
    when: ({ job }) => job.runAt !== null && Date.parse(job.runAt) >= parkedAtMs,
    sentence: (c) => `parked: attempt ${c.job.attempt} has ended, but the database refuses its outcome${lastError(c)}`,
    next: () => ({
      what: 'The outcome is written as soon as the database accepts it; the job is not run again',
      byAt: null,
    }),
    repair: 'settle-parked',
  },
  {
    code: 'backing-off',
    states,
    meaning: 'An attempt failed; it runs again after its backoff.',
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
    meaning: 'It was submitted for a time that is still to come.',
    orphans: [],
    when: (c) => !isPast(c, c.job.runAt),
    sentence: (c) => `scheduled: it is due in ${until(c, c.job.runAt as string)}`,
    next: dueLater,
    repair: null,
  },
  {
    code: 'no-worker',
    states,
    meaning: 'No living worker registers its kind in its queue.',
    orphans: ['unknown-kind'],
    when: ({ facts }) => facts.workers?.living === 0,
    sentence: (c) => `waiting: no live worker registers ${lane(c)}; ${lastSeen(c)}${ruleWords(c)}`,
    next: () => ({ what: 'Nothing is discarded: it is claimed as soon as a worker with this kind starts', byAt: null }),
    repair: null,
  },
  {
    code: 'workers-draining',
    states,
    meaning: 'All living workers that know its kind have stopped claiming: they drain, and end.',
    orphans: [],
    when: ({ facts: { workers } }) => workers?.claiming === 0,
    sentence: ({ facts: { workers } }) =>
      `waiting: the workers that know its kind (${workers?.living}) drain and claim no more${unresponsiveWords(workers)}`,
    next: () => ({
      what: 'It is claimed as soon as another worker with this kind starts; `holdfast work` starts one',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'stage-unknown',
    states,
    meaning: 'It stands at a stage that its kind, as last registered, does not have.',
    orphans: [],
    when: ({ facts, job }) => facts.kind !== null && job.stage >= facts.kind.stages,
    sentence: ({ facts, job }) =>
      `waiting: it stands at stage ${job.stage + 1}, and kind \`${job.kind}\` was last registered with ${plural(facts.kind?.stages ?? 0, 'stage')}`,
    next: () => ({ what: 'It is claimed as soon as a worker starts whose kind has that stage', byAt: null }),
    repair: null,
  },
  {
    code: 'suspect',
    states,
    meaning: 'It is suspected of killing its workers, and runs alone in a process.',
    orphans: [],
    when: ({ job }) => isSuspect(job),
    sentence: ({ job }) =>
      `waiting: it has lost ${plural(job.crashes, 'worker')} at this stage and is a suspect, which runs alone in a process`,
    next: ({ job }) => ({
      what: `A worker that holds nothing else claims it, or one drains for it; at ${job.crashBudget} lost workers it is quarantined`,
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'workers-blocked',
    states,
    meaning: 'In every worker that knows its kind, a handler blocks the event loop, so none of them can claim.',
    orphans: [],
    when: ({ facts: { workers } }) => (workers?.blocked ?? 0) > 0 && workers?.blocked === workers?.claiming,
    sentence: ({ facts: { workers } }) =>
      `waiting: a handler blocks the event loop of all workers that know its kind (${workers?.claiming}), for up to ${lengthWords(workers?.blockedMs ?? 0)}`,
    next: () => ({
      what: 'It is claimed as soon as such a handler lets go of the event loop, or another worker starts',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'workers-busy',
    states,
    meaning: 'All workers that know its kind hold, or still run, as many jobs as they run at a time.',
    orphans: [],
    when: ({ facts: { workers } }) =>
      workers?.holding != null && Math.max(workers.holding, workers.busy ?? 0) >= workers.concurrency,
    sentence: ({ facts: { workers, ahead } }) =>
      `waiting: all workers that know its kind (${workers?.living}) are busy with ${plural(workers?.holding ?? 0, 'job')}${leftoverWords(workers)}${aheadWords(ahead)}`,
    next: () => ({
      what: 'It is claimed when its turn comes; more workers, or a higher concurrency, would help',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'in-line',
    states,
    meaning: 'Other due jobs of its kind go before it.',
    orphans: [],
    when: ({ facts }) => (facts.ahead ?? 0) > 0,
    sentence: ({ facts }) => `waiting: its turn has not come${aheadWords(facts.ahead)}`,
    next: () => ({ what: 'It is claimed when its turn comes', byAt: null }),
    repair: null,
  },
  {
    code: 'overdue',
    states,
    meaning:
      'It is due, a worker is free, and yet no poll has claimed it: a wake-up was lost, and its poll is still to come.',
    orphans: ['submitted-unannounced', 'retry-timer-died', 'next-stage-not-started'],
    orphan: classOf,
    when: (c) => isTurnKnown(c) && (sinceMs(c, c.job.runAt) ?? 0) > c.config.pollMs + slackMs,
    sentence: (c) =>
      `waiting: it has been due for ${lengthWords(sinceMs(c, c.job.runAt) ?? 0)}, with ${plural(c.facts.workers?.living ?? 0, 'live worker')} that could claim it`,
    next: claimed,
    repair: 'wake',
  },
  {
    code: 'due',
    states,
    meaning: 'It is due, and about to be claimed.',
    orphans: [],
    when: () => true,
    sentence: (c) =>
      `waiting: it fell due ${ago(c, c.job.runAt)}, and ${plural(c.facts.workers?.living ?? 0, 'live worker')} may claim it`,
    next: claimed,
    repair: null,
  },
]

/** Handlers whose jobs were cancelled or taken away, and which have not ended yet. */
function leftoverWords(workers: WorkerFacts | null): string {
  const leftover = (workers?.busy ?? 0) - (workers?.holding ?? 0)
  if (leftover <= 0) return ''
  return ` and ${plural(leftover, 'handler')} of jobs that are no longer theirs`
}

function unresponsiveWords(workers: WorkerFacts | null): string {
  const count = workers?.unresponsive ?? 0
  return count === 0 ? '' : `; ${plural(count, 'handler')} of theirs ignored ${count === 1 ? 'its' : 'their'} signal`
}

function dueLater({ job, facts, config }: JobCase): Next {
  const dueAtMs = Date.parse(job.runAt as string)
  const byAt = new Date(dueAtMs + config.pollMs + slackMs)
  if (facts.workers?.living === 0)
    return { what: 'It falls due, but no live worker registers its kind at present', byAt: null }
  return { what: 'It falls due, and a worker claims it', byAt }
}

function lastError({ facts }: JobCase): string {
  const data = facts.events.findLast(({ type }) => type === 'job.retried' || type === 'job.parked')?.data as
    | { error?: { message?: unknown } }
    | null
    | undefined
  const message = data?.error?.message
  return typeof message === 'string' ? ` (${message})` : ''
}

/** Who paused a queue and why, as far as they said so. */
export function pauseWords({ pausedBy, reason }: { pausedBy?: string | null; reason?: string | null }): string {
  return `${pausedBy ? ` by ${pausedBy}` : ''}${reason ? ` (${reason})` : ''}`
}

/** How many jobs go before another; those beyond a thousand are not counted. */
export function aheadCount(ahead: number): string {
  return ahead >= mostAhead ? `at least ${mostAhead.toLocaleString('en')}` : String(ahead)
}

function aheadWords(ahead: number | null | undefined): string {
  if (!ahead) return ''
  return `; ${aheadCount(ahead)} due ${ahead === 1 ? 'job goes' : 'jobs go'} before it`
}
