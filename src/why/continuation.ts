import { ago, bySweep, type ContinuationCase, isLed, isPast, type Next, plural, sinceMs, until } from './case.ts'
import type { Rule } from './rule.ts'

const states = [] as const
/** So long after the expiry the leader has asked the owner, if it knows it. */
const askedMs = 10_000
/** How often the duties compare counts with ledgers. */
const compareMs = 10_000

const partWords = ({ barrier }: ContinuationCase) =>
  `${barrier.ledger} of ${plural(barrier.total, 'part')} have arrived`
const name = ({ barrier }: ContinuationCase) => `barrier ${JSON.stringify(barrier.id)}`
const isOpen = ({ barrier }: ContinuationCase) => barrier.firedAt === null && barrier.expiredAt === null
const isOverdue = (c: ContinuationCase) => isOpen(c) && isPast(c, c.barrier.expiresAt)
const overdueWords = (c: ContinuationCase) => `${name(c)} expired ${ago(c, c.barrier.expiresAt)}, and ${partWords(c)}`

function asked(c: ContinuationCase, what: string): Next {
  const dueInMs = Math.max(0, -(sinceMs(c, c.barrier.dueAt) ?? 0))
  return bySweep(c, what, dueInMs + c.config.ownerTimeoutMs)
}

/** Why a job is not submitted yet that is the continuation of a barrier of its own. */
export const continuationRules: readonly Rule<ContinuationCase>[] = [
  {
    code: 'continuation-lost',
    states,
    meaning: 'The barrier has fired, and its job is not there.',
    orphans: [],
    when: ({ barrier }) => barrier.firedAt !== null,
    sentence: (c) =>
      `lost: ${name(c)} fired ${ago(c, c.barrier.firedAt)}, and its job is not there; somebody removed it`,
    next: () => null,
    repair: null,
  },
  {
    code: 'barrier-given-up',
    states,
    meaning:
      'The barrier expired with work left, and its owner was asked about the execution: the job will not be submitted.',
    orphans: [],
    when: ({ barrier }) => barrier.endedBy !== undefined,
    sentence: (c) =>
      `not submitted: ${name(c)} expired, and ${partWords(c)}; ${endOf(c)} ${ago(c, c.barrier.expiredAt)}, and the barrier was removed`,
    next: () => ({ what: 'Nothing: a barrier that is opened anew has a job of its own', byAt: null }),
    repair: null,
  },
  {
    code: 'barrier-closed',
    states,
    meaning: 'The barrier expired with work left and was closed: the job will not be submitted.',
    orphans: [],
    when: ({ barrier }) => barrier.expiredAt !== null,
    sentence: (c) => `not submitted: ${name(c)} expired and was closed ${ago(c, c.barrier.expiredAt)}; ${partWords(c)}`,
    next: () => ({ what: 'Nothing, unless the barrier is opened again; late parts are abandoned', byAt: null }),
    repair: null,
  },
  {
    code: 'barrier-count-negative',
    states,
    meaning: 'The count of the barrier is below zero.',
    orphans: ['owned-negative-count'],
    when: ({ barrier }) => barrier.arrived < 0,
    sentence: (c) =>
      `not submitted: ${name(c)} counts ${c.barrier.arrived} arrived parts, which makes no sense; by its ledger, ${partWords(c)}`,
    next: (c) => bySweep(c, 'The barrier is counted anew by its ledger, which decides', 2_000),
    repair: 'compare',
  },
  {
    code: 'barrier-drained',
    states,
    meaning: 'All parts of the barrier have arrived, and it never fired.',
    orphans: ['owned-drained-not-fired'],
    when: ({ barrier }) => barrier.ledger >= barrier.total,
    sentence: (c) => `stuck: all ${plural(c.barrier.total, 'part')} of ${name(c)} have arrived, and it never fired`,
    next: (c) => bySweep(c, 'The barrier is compared with its ledger, and the job submitted', compareMs),
    repair: 'compare',
  },
  {
    code: 'barrier-tenant-missing',
    states,
    meaning: 'The barrier has expired, and its owner cannot be asked, for it has lost its tenant.',
    orphans: ['owned-tenant-missing'],
    when: (c) => isOverdue(c) && c.barrier.owner !== null && c.barrier.tenant === null,
    sentence: (c) =>
      `not submitted: ${overdueWords(c)}; it has no tenant, so its owner \`${c.barrier.owner}\` cannot be asked`,
    next: () => ({
      what: 'Nothing is guessed: set the tenant in holdfast.owned_barrier, or abort the barrier',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'barrier-expired',
    states,
    meaning: 'The barrier has expired with work left, and has no owner to tell.',
    orphans: ['owned-expired'],
    when: (c) => isOverdue(c) && c.barrier.owner === null,
    sentence: (c) => `not submitted: ${overdueWords(c)}`,
    next: (c) => bySweep(c, 'The barrier is closed; late parts are abandoned'),
    repair: 'close',
  },
  {
    code: 'owner-unknown',
    states,
    meaning: 'The barrier has expired, and no process that works or reaps knows its owner.',
    orphans: ['owner-unknown'],
    when: (c) => isOverdue(c) && c.barrier.asks === 0 && isLed(c) && (sinceMs(c, c.barrier.expiresAt) ?? 0) > askedMs,
    sentence: (c) =>
      `not submitted: ${overdueWords(c)}; its owner \`${c.barrier.owner}\` was never asked, so no process that works or reaps knows it`,
    next: () => ({
      what: 'The owner is asked as soon as a process works or reaps that knows it: connect({ owners }), or --owners-module',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'owner-silent',
    states,
    meaning: 'The barrier has expired, and its owner gives no answer that ends it.',
    orphans: ['owner-unreachable', 'owner-unclear'],
    when: (c) => isOverdue(c) && c.barrier.asks > 0,
    sentence: (c) =>
      `not submitted: ${overdueWords(c)}; its owner \`${c.barrier.owner}\` was asked ${c.barrier.asks === 1 ? 'once' : `${c.barrier.asks} times`}, without an answer that ends it`,
    next: (c) => asked(c, 'The owner is asked again; the barrier is kept until it answers'),
    repair: null,
  },
  {
    code: 'owner-to-ask',
    states,
    meaning: 'The barrier has expired with work left; its owner is asked next.',
    orphans: ['owned-expired', 'owner-ended'],
    when: isOverdue,
    sentence: (c) => `not submitted: ${overdueWords(c)}; its owner \`${c.barrier.owner}\` is to be asked`,
    next: (c) =>
      asked(
        c,
        'The owner is asked: it marks the execution failed, or says that it has ended, and the barrier is removed',
      ),
    repair: null,
  },
  {
    code: 'barrier-count-drifted',
    states,
    meaning: 'The count of the barrier disagrees with its parts.',
    orphans: ['owned-counter-drift'],
    when: ({ barrier }) => barrier.arrived !== barrier.ledger && barrier.ledger <= mostCounted,
    sentence: (c) => `not submitted: ${name(c)} counts ${c.barrier.arrived}, but by its ledger ${partWords(c)}`,
    next: (c) => bySweep(c, 'The barrier is counted anew by its ledger, once it has been quiet for a while', compareMs),
    repair: 'compare',
  },
  {
    code: 'barrier-rearmed',
    states,
    meaning: 'The barrier was armed again, and waits for parts; the new expiry counts.',
    orphans: ['owned-rearmed'],
    when: ({ barrier }) => barrier.isRearmed,
    sentence: (c) =>
      `not submitted yet: ${name(c)} was armed again ${ago(c, c.barrier.armedAt)}; ${partWords(c)}${expiryWords(c)}`,
    next: fires,
    repair: null,
  },
  {
    code: 'barrier-open',
    states,
    meaning: 'The barrier waits for parts.',
    orphans: [],
    when: () => true,
    sentence: (c) => `not submitted yet: ${name(c)} waits; ${partWords(c)}${expiryWords(c)}`,
    next: fires,
    repair: null,
  },
]

function endOf({ barrier }: ContinuationCase): string {
  const execution = `execution ${JSON.stringify(barrier.execution)} of owner \`${barrier.owner}\``
  if (barrier.endedBy === 'marked') return `${execution} was marked failed`
  return barrier.endedBy === 'ended' ? `${execution} was found ended` : `${execution} was found gone`
}

/** Ledgers are counted up to here for an answer. */
const mostCounted = 20_000

function expiryWords(c: ContinuationCase): string {
  return c.barrier.expiresAt ? `; it expires in ${until(c, c.barrier.expiresAt)}` : ''
}

function fires({ barrier }: ContinuationCase): Next {
  return {
    what: barrier.expiresAt
      ? 'The last part to arrive submits it; at the expiry the barrier is given up'
      : 'The last part to arrive submits it',
    byAt: barrier.expiresAt ? new Date(barrier.expiresAt) : null,
  }
}
