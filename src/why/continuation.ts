import { ago, bySweep, type ContinuationCase, isLed, isPast, type Next, plural, sinceMs, until } from './case.ts'
import { mostCounted } from './facts.ts'
import type { Rule } from './rule.ts'

const states = [] as const
/** How long after the expiry the leader has asked the owner, if it knows the owner. */
const askedMs = 10_000
/** How often the duties compare counts with ledgers. */
const compareMs = 10_000

const formatPart = ({ barrier }: ContinuationCase) =>
  `${barrier.ledger} of ${plural(barrier.total, 'part')} have arrived`
const name = ({ barrier }: ContinuationCase) => `barrier ${JSON.stringify(barrier.id)}`
const isOpen = ({ barrier }: ContinuationCase) => barrier.firedAt === null && barrier.expiredAt === null
const isOverdue = (c: ContinuationCase) => isOpen(c) && isPast(c, c.barrier.expiresAt)
const formatOverdue = (c: ContinuationCase) => `${name(c)} expired ${ago(c, c.barrier.expiresAt)}, and ${formatPart(c)}`

function asked(c: ContinuationCase, what: string): Next {
  const dueInMs = Math.max(0, -(sinceMs(c, c.barrier.dueAt) ?? 0))
  return bySweep(c, what, dueInMs + c.config.ownerTimeoutMs)
}

/** Why the continuation of a barrier is not submitted yet. */
export const continuationRules: readonly Rule<ContinuationCase>[] = [
  {
    code: 'continuation-lost',
    states,
    meaning: 'The barrier has fired, but its job does not exist.',
    orphans: [],
    when: ({ barrier }) => barrier.firedAt !== null,
    sentence: (c) =>
      `lost: ${name(c)} fired ${ago(c, c.barrier.firedAt)}, but its job does not exist; someone deleted it`,
    next: () => null,
    repair: null,
  },
  {
    code: 'barrier-given-up',
    states,
    meaning:
      'The barrier expired with missing parts, and its owner was asked about the execution: the job will not be submitted.',
    orphans: [],
    when: ({ barrier }) => barrier.endedBy !== undefined,
    sentence: (c) =>
      `not submitted: ${name(c)} expired, and ${formatPart(c)}; ${endOf(c)} ${ago(c, c.barrier.expiredAt)}, and the barrier was removed`,
    next: () => ({ what: 'Nothing happens: a new barrier gets its own job', byAt: null }),
    repair: null,
  },
  {
    code: 'barrier-closed',
    states,
    meaning: 'The barrier expired with missing parts and was closed: the job will not be submitted.',
    orphans: [],
    when: ({ barrier }) => barrier.expiredAt !== null,
    sentence: (c) =>
      `not submitted: ${name(c)} expired and was closed ${ago(c, c.barrier.expiredAt)}; ${formatPart(c)}`,
    next: () => ({ what: 'Nothing happens unless the barrier is reopened; late parts are abandoned', byAt: null }),
    repair: null,
  },
  {
    code: 'barrier-count-negative',
    states,
    meaning: 'The count of the barrier is below zero.',
    orphans: ['owned-negative-count'],
    when: ({ barrier }) => barrier.arrived < 0,
    sentence: (c) =>
      `not submitted: ${name(c)} counts ${c.barrier.arrived} arrived parts, which is impossible; by its ledger, ${formatPart(c)}`,
    next: (c) => bySweep(c, 'The barrier is recounted from its ledger, which decides', 2_000),
    repair: 'compare',
  },
  {
    code: 'barrier-drained',
    states,
    meaning: 'All parts of the barrier have arrived, but it never fired.',
    orphans: ['owned-drained-not-fired'],
    when: ({ barrier }) => barrier.ledger >= barrier.total,
    sentence: (c) => `stuck: all ${plural(c.barrier.total, 'part')} of ${name(c)} have arrived, but it never fired`,
    next: (c) => bySweep(c, 'The barrier is compared with its ledger, and the job is submitted', compareMs),
    repair: 'compare',
  },
  {
    code: 'barrier-tenant-missing',
    states,
    meaning: 'The barrier has expired, and its owner cannot be asked because the barrier has lost its tenant.',
    orphans: ['owned-tenant-missing'],
    when: (c) => isOverdue(c) && c.barrier.owner !== null && c.barrier.tenant === null,
    sentence: (c) =>
      `not submitted: ${formatOverdue(c)}; it has no tenant, so its owner \`${c.barrier.owner}\` cannot be asked`,
    next: () => ({
      what: 'The tenant is never guessed: set it in holdfast.owned_barrier, or abort the barrier',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'barrier-expired',
    states,
    meaning: 'The barrier has expired with missing parts, and has no owner to notify.',
    orphans: ['owned-expired'],
    when: (c) => isOverdue(c) && c.barrier.owner === null,
    sentence: (c) => `not submitted: ${formatOverdue(c)}`,
    next: (c) => bySweep(c, 'The barrier is closed; late parts are abandoned'),
    repair: 'close',
  },
  {
    code: 'owner-unknown',
    states,
    meaning: 'The barrier has expired, and its owner is not configured in any process that runs a worker or reaper.',
    orphans: ['owner-unknown'],
    when: (c) => isOverdue(c) && c.barrier.asks === 0 && isLed(c) && (sinceMs(c, c.barrier.expiresAt) ?? 0) > askedMs,
    sentence: (c) =>
      `not submitted: ${formatOverdue(c)}; its owner \`${c.barrier.owner}\` was never asked, so it is not configured in any process that runs a worker or reaper`,
    next: () => ({
      what: 'The owner is asked as soon as a process with this owner runs a worker or reaper: connect({ owners }), or --owners-module',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'owner-silent',
    states,
    meaning: 'The barrier has expired, and its owner has not given a conclusive answer.',
    orphans: ['owner-unreachable', 'owner-unclear'],
    when: (c) => isOverdue(c) && c.barrier.asks > 0,
    sentence: (c) =>
      `not submitted: ${formatOverdue(c)}; its owner \`${c.barrier.owner}\` was asked ${c.barrier.asks === 1 ? 'once' : `${c.barrier.asks} times`} without a conclusive answer`,
    next: (c) => asked(c, 'The owner is asked again; the barrier is kept until it answers'),
    repair: null,
  },
  {
    code: 'owner-to-ask',
    states,
    meaning: 'The barrier has expired with missing parts; its owner is asked next.',
    orphans: ['owned-expired', 'owner-ended'],
    when: isOverdue,
    sentence: (c) => `not submitted: ${formatOverdue(c)}; its owner \`${c.barrier.owner}\` is asked next`,
    next: (c) =>
      asked(c, 'The owner marks the execution failed, or reports that it has ended, and the barrier is removed'),
    repair: null,
  },
  {
    code: 'barrier-count-drifted',
    states,
    meaning: 'The count of the barrier disagrees with its parts.',
    orphans: ['owned-counter-drift'],
    when: ({ barrier }) => barrier.arrived !== barrier.ledger && barrier.ledger <= mostCounted,
    sentence: (c) => `not submitted: ${name(c)} counts ${c.barrier.arrived}, but by its ledger ${formatPart(c)}`,
    next: (c) => bySweep(c, 'The barrier is recounted from its ledger once it has been quiet for a while', compareMs),
    repair: 'compare',
  },
  {
    code: 'barrier-rearmed',
    states,
    meaning: 'The barrier was re-armed and is waiting for parts; the new expiry applies.',
    orphans: ['owned-rearmed'],
    when: ({ barrier }) => barrier.isRearmed,
    sentence: (c) =>
      `not submitted yet: ${name(c)} was re-armed ${ago(c, c.barrier.armedAt)}; ${formatPart(c)}${formatExpiry(c)}`,
    next: fires,
    repair: null,
  },
  {
    code: 'barrier-open',
    states,
    meaning: 'The barrier is waiting for parts.',
    orphans: [],
    when: () => true,
    sentence: (c) => `not submitted yet: ${name(c)} is open; ${formatPart(c)}${formatExpiry(c)}`,
    next: fires,
    repair: null,
  },
]

function endOf({ barrier }: ContinuationCase): string {
  const execution = `execution ${JSON.stringify(barrier.execution)} of owner \`${barrier.owner}\``
  if (barrier.endedBy === 'marked') return `${execution} was marked failed`
  return barrier.endedBy === 'ended' ? `${execution} was found ended` : `${execution} was found gone`
}

function formatExpiry(c: ContinuationCase): string {
  return c.barrier.expiresAt ? `; it expires in ${until(c, c.barrier.expiresAt)}` : ''
}

function fires({ barrier }: ContinuationCase): Next {
  return {
    what: barrier.expiresAt
      ? 'The last part to arrive submits it; at the expiry, the barrier stops waiting'
      : 'The last part to arrive submits it',
    byAt: barrier.expiresAt ? new Date(barrier.expiresAt) : null,
  }
}
