import { finalStates, isFinal } from '../job/machine.ts'
import {
  ago,
  beatMs,
  bySweep,
  isPast,
  type JobCase,
  later,
  type Next,
  plural,
  sinceMs,
  unresponsiveWords,
  until,
} from './case.ts'
import { type DeliveryFacts, type GroupFacts, isBehind } from './facts.ts'
import type { Rule } from './rule.ts'

const states = finalStates
/** From this many dead readers on, one event is suspected: see the room events. */
const suspectReaders = 2

/** How a job ended, in words. */
function endWords(c: JobCase): string {
  const { job } = c
  const why = job.error?.message ? `: ${job.error.message.replace(/\.$/, '')}` : ''
  if (job.state === 'succeeded') return `succeeded ${ago(c, job.finishedAt)}, at attempt ${job.attempt}`
  if (job.state === 'partial' && !job.error)
    return `partial ${ago(c, job.finishedAt)}: some items failed within the threshold`
  return `${job.state} ${ago(c, job.finishedAt)}${why}`
}

/** The group that is behind in what it wants to read of this job: webhooks before the others. */
function behind({ facts }: JobCase): GroupFacts | undefined {
  const late = facts.groups.filter(isBehind)
  return late.find(({ name }) => name === 'webhooks') ?? late[0]
}

function isRead(c: JobCase, { hasReader, readerUntil }: GroupFacts): boolean {
  return hasReader && readerUntil !== null && !isPast(c, readerUntil)
}

const pendingOf = ({ facts }: JobCase) => facts.deliveries?.oldestPending ?? null

/** A claim whose time is over, and of which nobody has written how it went. */
function lostItsSender(c: JobCase): boolean {
  const pending = pendingOf(c)
  return pending?.claimedAt != null && pending.tries > pending.failures && isPast(c, pending.nextAt)
}

function readAgain(c: JobCase): Next {
  const { readerLeaseMs, readerBeatMs, pollMs } = c.config
  return {
    what: 'The next reader of the group goes on behind the last event that was handled',
    byAt: later(c, readerLeaseMs + readerBeatMs + pollMs),
  }
}

function sentAgain(c: JobCase): Next {
  return { what: 'Any process that works, reaps or delivers sends it', byAt: later(c, c.config.pollMs + 500) }
}

/** What is still wrong after the end, first; then the end itself. */
export const endedRules: readonly Rule<JobCase>[] = [
  {
    code: 'fan-out-abandoned',
    states,
    meaning: 'It has ended, and items of its fan-out still live.',
    orphans: ['fan-out-abandoned'],
    when: ({ facts }) => facts.barriers.some(({ joinedAt, hasLive }) => joinedAt === null && hasLive),
    sentence: (c) => `${endWords(c)}; but items of its fan-out still live`,
    next: (c) => bySweep(c, 'They are cancelled, and the barrier is closed'),
    repair: 'stop-items',
  },
  {
    code: 'handler-unresponsive',
    states,
    meaning: 'It has ended, and the handler of an attempt still runs: it ignores its signal.',
    orphans: ['handler-ignores-signal'],
    when: ({ facts }) => (facts.unresponsive?.length ?? 0) > 0,
    sentence: (c) => `${endWords(c)}; ${unresponsiveWords(c)}`,
    next: () => ({
      what: 'Its return value is discarded; the handler ends by itself, or with its process',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'still-executing',
    states: ['cancelled'],
    meaning: 'It is cancelled, and its handler may still run: its worker is told with the next heartbeat.',
    orphans: ['cancelled-still-executing'],
    when: isExecuting,
    sentence: (c) =>
      `${endWords(c)}; its handler may still run on session ${c.facts.session?.id}, which is told with its next heartbeat`,
    next: (c) => ({
      what: "The handler's signal fires; whatever it returns is refused",
      byAt: new Date(Date.parse(c.job.finishedAt as string) + graceMs(c)),
    }),
    repair: null,
  },
  {
    code: 'event-kills-readers',
    states,
    meaning:
      'Readers of a group died at this place of the log; events are read one by one to find which of them kills.',
    orphans: ['event-kills-readers'],
    when: (c) => (behind(c)?.crashes ?? 0) >= suspectReaders,
    sentence: (c) =>
      `${endWords(c)}; but group \`${behind(c)?.name}\` has not read of it: ${behind(c)?.crashes} of its readers died there`,
    next: (c) => ({
      ...readAgain(c),
      what: 'Events are read one by one; the one that kills its readers is parked after the fifth, and the group goes on',
    }),
    repair: null,
  },
  {
    code: 'event-held-back',
    states,
    meaning: 'A group waits with reading of it for an older transaction, which may still write an event.',
    orphans: ['event-committed-late'],
    when: (c) => {
      const group = behind(c)
      return group !== undefined && isRead(c, group) && isOlderWriter(c)
    },
    sentence: (c) =>
      `${endWords(c)}; group \`${behind(c)?.name}\` has not read of it, for a transaction that began ${ago(c, c.facts.oldestWriter?.since)} may still write events before it`,
    next: () => ({ what: 'It is read in its place, when that transaction has ended', byAt: null }),
    repair: null,
  },
  {
    code: 'webhook-not-planned',
    states,
    meaning: 'Its webhooks are not planned: nobody reads the log for them at present.',
    orphans: ['delivery-not-planned'],
    when: (c) => isUnread(c) && behind(c)?.name === 'webhooks',
    sentence: (c) => `${endWords(c)}; but its webhooks are not planned: ${readerWords(c)}`,
    next: (c) => ({ ...readAgain(c), what: 'The next process that works, reaps or delivers plans them' }),
    repair: null,
  },
  {
    code: 'group-unread',
    states,
    meaning: 'A group of readers has not read of its end: nobody reads for it at present.',
    orphans: ['group-reader-died'],
    when: isUnread,
    sentence: (c) => `${endWords(c)}; but group \`${behind(c)?.name}\` has not read of it: ${readerWords(c)}`,
    next: readAgain,
    repair: null,
  },
  {
    code: 'webhook-endpoint-off',
    states,
    meaning: 'A webhook is to be sent to an endpoint that is switched off or gone.',
    orphans: ['endpoint-disabled-with-pending'],
    when: (c) => pendingOf(c)?.isOff === true,
    sentence: (c) => `${endWords(c)}; a webhook is pending for an endpoint that is switched off or gone`,
    next: (c) => ({
      what: 'It dies unsent, with the reason, and can be replayed',
      byAt: later(c, c.config.pollMs + 500),
    }),
    repair: null,
  },
  {
    code: 'webhook-sender-died',
    states,
    meaning: 'The sender of a webhook died before it could write how that went.',
    orphans: ['delivery-sender-died'],
    when: lostItsSender,
    sentence: (c) =>
      `${endWords(c)}; the sender of a webhook was lost: its time was over ${ago(c, pendingOf(c)?.nextAt)}`,
    next: sentAgain,
    repair: null,
  },
  {
    code: 'webhook-pending',
    states,
    meaning: 'Webhooks are being sent, or wait for their next try.',
    orphans: [],
    when: (c) => pendingOf(c) !== null,
    sentence: (c) => `${endWords(c)}; ${pendingWords(c, c.facts.deliveries as DeliveryFacts)}`,
    next: (c) => {
      const nextAt = pendingOf(c)?.nextAt as string
      return isPast(c, nextAt)
        ? sentAgain(c)
        : { what: 'It is tried again', byAt: new Date(Date.parse(nextAt) + c.config.pollMs + 500) }
    },
    repair: null,
  },
  {
    code: 'webhook-dead',
    states,
    meaning: 'A webhook was given up, refused for good, or its endpoint is switched off.',
    orphans: [],
    when: ({ facts }) => (facts.deliveries?.dead ?? 0) > 0,
    sentence: (c) =>
      `${endWords(c)}; ${plural(c.facts.deliveries?.dead ?? 0, 'webhook')} could not be delivered (${c.facts.deliveries?.lastDead?.error ?? 'no reason was noted'})`,
    next: () => null,
    repair: 'replay',
  },
  end('succeeded', ['succeeded'], 'All stages are done.', null),
  end('partial', ['partial'], 'It has a usable but incomplete result.', 'redo'),
  {
    ...end('quarantined', ['failed'], 'It lost as many workers as its crash budget allows.', 'redo'),
    when: ({ job }) => job.state === 'failed' && job.error?.code === 'quarantined',
  },
  end('failed', ['failed'], 'Its retries are spent, or its error is permanent.', 'redo'),
  end('cancelled', ['cancelled'], 'Somebody cancelled it.', null),
]

function end(code: string, of: Rule<JobCase>['states'], meaning: string, repair: 'redo' | null): Rule<JobCase> {
  return {
    code,
    states: of,
    meaning,
    orphans: [],
    when: ({ job }) => isFinal(job.state) && of.includes(job.state),
    sentence: (c) => `${endWords(c)}${refusedWords(c)}`,
    next: () => null,
    repair,
    // an item that runs again alone would count in a fan-out that may have joined: its parent is the one to redo
    mayRepair: ({ facts }) => facts.itemOf === null,
  }
}

function graceMs(c: JobCase): number {
  return 2 * beatMs(c)
}

function isExecuting(c: JobCase): boolean {
  const { session, events, refusals } = c.facts
  if (c.job.state !== 'cancelled' || !session || session.endedAt || isPast(c, session.leaseUntil)) return false
  // a cancel that met a running attempt tells its session
  const isFromRunning = events.findLast(({ type }) => type === 'job.cancelled')?.sessionId != null
  const isAnswered = refusals.some(({ attempt }) => attempt === c.job.attempt)
  return isFromRunning && !isAnswered && (sinceMs(c, c.job.finishedAt) ?? 0) < graceMs(c)
}

function isUnread(c: JobCase): boolean {
  const group = behind(c)
  return group !== undefined && !isRead(c, group)
}

function isOlderWriter({ facts }: JobCase): boolean {
  const told = facts.events.at(-1)?.at
  return facts.oldestWriter !== null && told !== undefined && Date.parse(facts.oldestWriter.since) <= Date.parse(told)
}

function readerWords(c: JobCase): string {
  const group = behind(c)
  if (!group?.hasReader) return 'nobody reads for the group at present'
  return group.readerUntil ? `the lease of its reader ran out ${ago(c, group.readerUntil)}` : 'its reader is gone'
}

function pendingWords(c: JobCase, { pending, oldestPending }: DeliveryFacts): string {
  const nextAt = oldestPending?.nextAt as string
  const when = isPast(c, nextAt) ? `it fell due ${ago(c, nextAt)}` : `next try in ${until(c, nextAt)}`
  const why = oldestPending?.error ? `, after: ${oldestPending.error}` : ''
  return `${plural(pending, 'webhook')} pending (${when}${why})`
}

function refusedWords({ facts: { refusals } }: JobCase): string {
  return refusals.length === 0
    ? ''
    : `; ${plural(refusals.length, 'late write')} about it ${refusals.length === 1 ? 'was' : 'were'} refused`
}
