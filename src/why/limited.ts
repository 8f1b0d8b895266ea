import { formatDuration } from '../errors/duration.ts'
import { bySweep, isPast, type JobCase, plural, until } from './case.ts'
import type { LimitFacts, OneLimitFacts } from './limit-facts.ts'
import type { Rule } from './rule.ts'

const states = ['queued'] as const

/** The limit whose slots are all taken, if there is one. */
function fullOf({ facts }: JobCase): OneLimitFacts | undefined {
  return facts.limit?.limits.find(({ concurrency, holding }) => concurrency !== null && holding >= concurrency)
}

/** The limit whose rate is used up, if there is one. */
function spentOf({ facts }: JobCase): OneLimitFacts | undefined {
  return facts.limit?.limits.find(({ tokens }) => tokens !== null && tokens < 1)
}

const isHeld = (c: JobCase) => c.facts.limit?.heldUntil != null && !isPast(c, c.facts.limit.heldUntil)

function nameOf({ scope, name, key }: OneLimitFacts): string {
  return `${scope} \`${name}\`${key ? ` and key \`${key}\`` : ''}`
}

function formatHolders({ holders, holding }: OneLimitFacts): string {
  if (!holders || holders.length === 0) return ''
  const shown = holders.map(({ id, sessionId }) => `${id} (session ${sessionId})`)
  return `: ${shown.join(', ')}${holding > holders.length ? ` and ${holding - holders.length} more` : ''}`
}

/** What a limit keeps waiting. */
export const limitRules: readonly Rule<JobCase>[] = [
  {
    code: 'limit-without-gate',
    states,
    meaning: 'It was queued before a limit was set that applies to it, and does not wait at its gate yet.',
    orphans: ['limit-without-gate'],
    when: ({ facts }) => facts.limit?.hasGate === false,
    sentence: ({ job }) =>
      `waiting: a limit was set on kind \`${job.kind}\` or queue \`${job.queue}\` after it was queued`,
    next: (c) => bySweep(c, 'The leader sends it to its gate, and a worker claims it there'),
    repair: null,
  },
  {
    code: 'limit-full',
    states,
    meaning: 'Other jobs hold all slots of a limit that applies to it.',
    orphans: [],
    when: (c) => fullOf(c) !== undefined,
    sentence: (c) => {
      const full = fullOf(c) as OneLimitFacts
      if (full.concurrency === 0) return `waiting: the limit on ${nameOf(full)} is 0, so none of its jobs may run`
      return `waiting: the limit on ${nameOf(full)} is ${full.concurrency}, and ${plural(full.holding, 'job')} ${full.holding === 1 ? 'holds' : 'hold'} its slots${formatHolders(full)}`
    },
    next: (c) => ({
      what:
        fullOf(c)?.concurrency === 0
          ? 'Nothing happens until someone raises the limit'
          : 'It is claimed when one of them ends and its turn comes',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'limit-held',
    states,
    meaning: 'A job of its key was refused by another system, which asked to wait.',
    orphans: [],
    when: isHeld,
    sentence: (c) => {
      const { key, heldUntil } = c.facts.limit as LimitFacts
      return `waiting: a job${key ? ` with key \`${key}\`` : ' of its kind'} was rate limited, so all of them are held back for ${until(c, heldUntil as string)}`
    },
    next: (c) => ({
      what: 'It is claimed after that, when its turn comes',
      byAt: new Date(c.facts.limit?.heldUntil as string),
    }),
    repair: null,
  },
  {
    code: 'limit-rate',
    states,
    meaning: 'As many jobs have started as the rate of a limit allows.',
    orphans: [],
    when: (c) => spentOf(c) !== undefined,
    sentence: (c) => {
      const spent = spentOf(c) as OneLimitFacts
      return `waiting: the rate of ${nameOf(spent)} is ${spent.rate} per ${formatDuration(spent.rateMs ?? 0)}, and is used up`
    },
    next: () => ({ what: 'It is claimed when the rate allows it and its turn comes', byAt: null }),
    repair: null,
  },
  {
    code: 'gate-closed',
    states,
    meaning: 'The gate that it waits at is closed although its limits have room.',
    orphans: ['gate-closed'],
    when: ({ facts }) => facts.limit?.isOpen === false,
    sentence: () => 'waiting: the gate of its limit is closed, although slots are free',
    next: (c) => bySweep(c, 'The leader opens the gate, and a worker claims it', 10_000),
    repair: null,
  },
]
