import { finalStates, isFinal } from '../job/machine.ts'
import {
  ago,
  beatMs,
  bySweep,
  formatUnresponsive,
  isPast,
  type JobCase,
  later,
  type Next,
  plural,
  sinceMs,
  until,
} from './case.ts'
import { type DeliveryFacts, type GroupFacts, isBehind } from './facts.ts'
import type { Rule } from './rule.ts'

const states = finalStates
/** From this many dead readers on, an event is suspected of killing them: see src/events/reader.ts. */
const suspectReaders = 2

/** How a job ended, in words. */
export function formatEnd(c: JobCase): string {
  const { job } = c
  const why = job.error?.message ? `: ${job.error.message.replace(/\.$/, '')}` : ''
  if (job.state === 'succeeded') return `succeeded ${ago(c, job.finishedAt)}, at attempt ${job.attempt}`
  if (job.state === 'partial' && !job.error)
    return `partial ${ago(c, job.finishedAt)}: some items failed within the threshold`
  return `${job.state} ${ago(c, job.finishedAt)}${why}${formatBulk(c)}`
}

/** The bulk operation that cancelled it, if one did. */
function formatBulk({ job, facts }: JobCase): string {
  return job.state === 'cancelled' && facts.bulk?.operation === 'cancel' ? ` (bulk operation ${facts.bulk.id})` : ''
}

/** Whether the process that carried on the bulk operation is gone: one that gives it back sets `nextAt` as well. */
function hasLostBulk(c: JobCase): boolean {
  const { bulk } = c.facts
  return (
    bulk?.state === 'running' && isPast(c, bulk.leaseUntil) && Date.parse(bulk.leaseUntil) > Date.parse(bulk.nextAt)
  )
}

/** A group that has not read all events of this job that it wants; the webhooks come first. */
function behind({ facts }: JobCase): GroupFacts | undefined {
  const late = facts.groups.filter(isBehind)
  return late.find(({ name }) => name === 'webhooks') ?? late[0]
}

function isRead(c: JobCase, { hasReader, readerUntil }: GroupFacts): boolean {
  return hasReader && readerUntil !== null && !isPast(c, readerUntil)
}

const pendingOf = ({ facts }: JobCase) => facts.deliveries?.oldestPending ?? null

/** Whether its claim ran out before the sender recorded the result. */
function lostItsSender(c: JobCase): boolean {
  const pending = pendingOf(c)
  return pending?.claimedAt != null && pending.tries > pending.failures && isPast(c, pending.nextAt)
}

function readAgain(c: JobCase): Next {
  const { readerLeaseMs, readerBeatMs, pollMs } = c.config
  return {
    what: 'The next reader of the group continues after the last handled event',
    byAt: later(c, readerLeaseMs + readerBeatMs + pollMs),
  }
}

function sentAgain(c: JobCase): Next {
  return {
    what: 'Any process that runs a worker, a reaper or `hf.deliver()` sends it',
    byAt: later(c, c.config.pollMs + 500),
  }
}

/** First what is still wrong after a job has ended, then how it ended. */
export const endedRules: readonly Rule<JobCase>[] = [
  {
    code: 'fan-out-abandoned',
    states,
    meaning: 'It has ended, but items of its fan-out are still live.',
    orphans: ['fan-out-abandoned'],
    when: ({ facts }) => facts.barriers.some(({ joinedAt, hasLive }) => joinedAt === null && hasLive),
    sentence: (c) => `${formatEnd(c)}; but items of its fan-out are still live`,
    next: (c) => bySweep(c, 'They are cancelled, and the barrier is closed'),
    repair: 'stop-items',
  },
  {
    code: 'handler-unresponsive',
    states,
    meaning: 'It has ended, but the handler of an attempt is still running: it ignores its abort signal.',
    orphans: ['handler-ignores-signal'],
    when: ({ facts }) => (facts.unresponsive?.length ?? 0) > 0,
    sentence: (c) => `${formatEnd(c)}; ${formatUnresponsive(c)}`,
    next: () => ({
      what: 'The handler ends on its own or with its process; its return value is discarded',
      byAt: null,
    }),
    repair: null,
  },
  {
    code: 'still-executing',
    states: ['cancelled'],
    meaning: 'It is cancelled, but its handler may still be running: its worker is notified with the next heartbeat.',
    orphans: ['cancelled-still-executing'],
    when: isExecuting,
    sentence: (c) =>
      `${formatEnd(c)}; its handler may still be running on session ${c.facts.session?.id}, which is notified with its next heartbeat`,
    next: (c) => ({
      what: "The handler's abort signal fires; its return value is discarded",
      byAt: new Date(Date.parse(c.job.finishedAt as string) + graceMs(c)),
    }),
    repair: null,
  },
  {
    code: 'event-kills-readers',
    states,
    meaning:
      'Readers of a group died at this position in the log; events are read one by one to find the one that kills them.',
    orphans: ['event-kills-readers'],
    when: (c) => (behind(c)?.crashes ?? 0) >= suspectReaders,
    sentence: (c) =>
      `${formatEnd(c)}; but group \`${behind(c)?.name}\` has not read its events: ${behind(c)?.crashes} readers died there`,
    next: (c) => ({
      ...readAgain(c),
      what: 'Events are read one by one; the event that kills its readers is parked after the fifth, and the group continues',
    }),
    repair: null,
  },
  {
    code: 'event-held-back',
    states,
    meaning: 'A group has not read its events because an older transaction may still write earlier ones.',
    orphans: ['event-committed-late'],
    when: (c) => {
      const group = behind(c)
      return group !== undefined && isRead(c, group) && isOlderWriter(c)
    },
    sentence: (c) =>
      `${formatEnd(c)}; group \`${behind(c)?.name}\` has not read its events because a transaction that began ${ago(c, c.facts.oldestWriter?.since)} may still write earlier ones`,
    next: () => ({ what: 'The events are read in order once that transaction has ended', byAt: null }),
    repair: null,
  },
  {
    code: 'webhook-not-planned',
    states,
    meaning: 'Its webhooks are not planned: no process is reading the log for webhooks.',
    orphans: ['delivery-not-planned'],
    when: (c) => isUnread(c) && behind(c)?.name === 'webhooks',
    sentence: (c) => `${formatEnd(c)}; but its webhooks are not planned: ${formatReader(c)}`,
    next: (c) => ({
      ...readAgain(c),
      what: 'The next process that runs a worker, a reaper or `hf.deliver()` plans them',
    }),
    repair: null,
  },
  {
    code: 'group-unread',
    states,
    meaning: 'A group has not read its events: no reader is running for the group.',
    orphans: ['group-reader-died'],
    when: isUnread,
    sentence: (c) => `${formatEnd(c)}; but group \`${behind(c)?.name}\` has not read its events: ${formatReader(c)}`,
    next: readAgain,
    repair: null,
  },
  {
    code: 'webhook-endpoint-off',
    states,
    meaning: 'A webhook is pending for an endpoint that is disabled or deleted.',
    orphans: ['endpoint-disabled-with-pending'],
    when: (c) => pendingOf(c)?.isOff === true,
    sentence: (c) => `${formatEnd(c)}; a webhook is pending for an endpoint that is disabled or deleted`,
    next: (c) => ({
      what: 'It becomes a dead letter without being sent, and can be replayed',
      byAt: later(c, c.config.pollMs + 500),
    }),
    repair: null,
  },
  {
    code: 'webhook-sender-died',
    states,
    meaning: 'The sender of a webhook died before it recorded the outcome.',
    orphans: ['delivery-sender-died'],
    when: lostItsSender,
    sentence: (c) =>
      `${formatEnd(c)}; the sender of a webhook was lost: its claim ran out ${ago(c, pendingOf(c)?.nextAt)}`,
    next: sentAgain,
    repair: null,
  },
  {
    code: 'webhook-pending',
    states,
    meaning: 'Webhooks are being sent, or are waiting to be retried.',
    orphans: [],
    when: (c) => pendingOf(c) !== null,
    sentence: (c) => `${formatEnd(c)}; ${formatPending(c, c.facts.deliveries as DeliveryFacts)}`,
    next: (c) => {
      const nextAt = pendingOf(c)?.nextAt as string
      return isPast(c, nextAt)
        ? sentAgain(c)
        : { what: 'It is retried', byAt: new Date(Date.parse(nextAt) + c.config.pollMs + 500) }
    },
    repair: null,
  },
  {
    code: 'webhook-dead',
    states,
    meaning: 'A webhook exhausted its retries or was permanently rejected, or its endpoint is disabled.',
    orphans: [],
    when: ({ facts }) => (facts.deliveries?.dead ?? 0) > 0,
    sentence: (c) =>
      `${formatEnd(c)}; ${plural(c.facts.deliveries?.dead ?? 0, 'webhook')} could not be delivered (${c.facts.deliveries?.lastDead?.error ?? 'no reason was recorded'})`,
    next: () => null,
    repair: 'replay',
  },
  {
    code: 'bulk-abandoned',
    states: ['cancelled'],
    meaning: 'A bulk operation cancelled it, and then lost its process before it had reached all its jobs.',
    orphans: ['bulk-process-died'],
    when: (c) => c.job.state === 'cancelled' && hasLostBulk(c),
    sentence: (c) =>
      `${formatEnd(c)}; the process of that operation was lost: its lease ran out ${ago(c, c.facts.bulk?.leaseUntil)}`,
    next: (c) => ({ what: 'Another process carries the operation on', byAt: later(c, 2_500) }),
    repair: null,
  },
  end('succeeded', ['succeeded'], 'All stages are done.', null),
  end('partial', ['partial'], 'It has a usable but incomplete result.', 'redo'),
  {
    ...end(
      'quarantined',
      ['failed'],
      'It exhausted its crash budget: too many workers were lost while they ran it.',
      'redo',
    ),
    when: ({ job }) => job.state === 'failed' && job.error?.code === 'quarantined',
  },
  end('failed', ['failed'], 'It is out of retries, or its error is permanent.', 'redo'),
  end('cancelled', ['cancelled'], 'It was cancelled.', null),
]

function end(code: string, of: Rule<JobCase>['states'], meaning: string, repair: 'redo' | null): Rule<JobCase> {
  return {
    code,
    states: of,
    meaning,
    orphans: [],
    when: ({ job }) => isFinal(job.state) && of.includes(job.state),
    sentence: (c) => `${formatEnd(c)}${formatRefused(c)}`,
    next: () => null,
    repair,
    // an item that is redone alone would be counted in a fan-out that may have joined: redo its parent instead
    mayRepair: ({ facts }) => facts.itemOf === null,
  }
}

function graceMs(c: JobCase): number {
  return 2 * beatMs(c)
}

function isExecuting(c: JobCase): boolean {
  const { session, events, refusals } = c.facts
  if (c.job.state !== 'cancelled' || !session || session.endedAt || isPast(c, session.leaseUntil)) return false
  // the event of a cancel names the session only if the attempt was running
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

function formatReader(c: JobCase): string {
  const group = behind(c)
  if (!group?.hasReader) return 'no reader is running for the group'
  return group.readerUntil ? `the lease of its reader ran out ${ago(c, group.readerUntil)}` : 'its reader is gone'
}

function formatPending(c: JobCase, { pending, oldestPending }: DeliveryFacts): string {
  const nextAt = oldestPending?.nextAt as string
  const when = isPast(c, nextAt) ? `it became due ${ago(c, nextAt)}` : `next attempt in ${until(c, nextAt)}`
  const why = oldestPending?.error ? `, after: ${oldestPending.error}` : ''
  return `${plural(pending, 'webhook')} pending (${when}${why})`
}

function formatRefused({ facts: { refusals } }: JobCase): string {
  return refusals.length === 0
    ? ''
    : `; ${plural(refusals.length, 'late write')} ${refusals.length === 1 ? 'was' : 'were'} refused`
}
