import { endedItems } from '../job/fan-out.ts'
import { ago, barrierOf, bySweep, hasDrifted, isPast, type JobCase, ledgerTotal, plural, until } from './case.ts'
import type { BarrierFacts } from './facts.ts'
import type { Rule } from './rule.ts'

const states = ['waiting'] as const
/** How long a barrier must be quiet before the leader recounts it, and how often it does: see the duty `recount`. */
const recountMs = 10_000

/** A rule about the barrier that the job waits for. */
type BarrierRule = Omit<Rule<JobCase>, 'states' | 'when' | 'sentence' | 'next'> & {
  when: (barrier: BarrierFacts, c: JobCase) => boolean
  sentence: (barrier: BarrierFacts, c: JobCase) => string
  next: (barrier: BarrierFacts, c: JobCase) => ReturnType<Rule<JobCase>['next']>
}

/** Whether there is a barrier that will join the job. */
function joins(barrier: BarrierFacts | undefined): barrier is BarrierFacts {
  return barrier !== undefined && barrier.armedAt !== null && barrier.joinedAt === null
}

function about({ when, sentence, next, ...rule }: BarrierRule): Rule<JobCase> {
  const own = (c: JobCase) => barrierOf(c) as BarrierFacts
  return {
    ...rule,
    states,
    when: (c) => when(own(c), c),
    sentence: (c) => sentence(own(c), c),
    next: (c) => next(own(c), c),
  }
}

function missing(barrier: BarrierFacts): number {
  const total = ledgerTotal(barrier)
  return total === null || barrier.total === null ? 0 : Math.max(0, barrier.total - total)
}

/** What a job that has fanned out waits for. */
export const waitingRules: readonly Rule<JobCase>[] = [
  {
    code: 'no-barrier',
    states,
    meaning: 'It is waiting, but there is no barrier to join it.',
    orphans: ['waiting-without-barrier'],
    when: (c) => !joins(barrierOf(c)),
    sentence: (c) => `stuck: it waits, but ${formatGone(barrierOf(c))}`,
    next: (c) => bySweep(c, 'It returns to its queue; the worker that claims it joins the fan-out, or reopens it'),
    repair: 'requeue',
  },
  about({
    code: 'count-negative',
    meaning: 'A counter of its barrier is below zero.',
    orphans: ['negative-count'],
    when: ({ succeeded, failed, cancelled }) => Math.min(succeeded, failed, cancelled) < 0,
    sentence: (barrier) =>
      `waiting: a counter of its barrier is negative (${formatCount(barrier)}); only the ledger has the correct count`,
    next: (_, c) => bySweep(c, 'The barrier is recounted from its ledger', recountMs),
    repair: 'recount',
  }),
  about({
    code: 'items-lost',
    meaning: 'Items of its barrier are missing from the ledger.',
    orphans: ['items-lost'],
    when: (barrier) => missing(barrier) > 0,
    sentence: (barrier) =>
      `waiting: ${plural(missing(barrier), 'item')} of ${barrier.total} ${missing(barrier) === 1 ? 'is' : 'are'} missing from the ledger${barrier.hasLive ? '; the others continue' : ', and none is left to wait for'}`,
    next: (barrier, c) =>
      barrier.hasLive
        ? { what: 'When the others have ended, the missing items count as failed, and the join fires', byAt: null }
        : bySweep(c, 'The missing items count as failed, and the join fires'),
    repair: 'join',
    mayRepair: (c) => barrierOf(c)?.hasLive === false,
  }),
  about({
    code: 'drained',
    meaning: 'All items of its barrier have ended, but the join never fired.',
    orphans: ['drained-not-joined'],
    when: (barrier) => !barrier.hasLive,
    sentence: (barrier) => `stuck: all ${plural(barrier.total ?? 0, 'item')} have ended, but the join never fired`,
    next: (_, c) => bySweep(c, 'The join fires'),
    repair: 'join',
  }),
  about({
    code: 'stop-unfinished',
    meaning: 'Its fan-out was stopped, but some of its items are still live.',
    orphans: ['stop-unfinished'],
    when: (barrier) => barrier.stoppedAt !== null,
    sentence: (barrier, c) =>
      `waiting: its fan-out was stopped ${ago(c, barrier.stoppedAt)}, but some of its items are not cancelled yet (${formatCount(barrier)})`,
    next: (_, c) => bySweep(c, 'The remaining items are cancelled, and the join fires'),
    repair: 'stop-items',
  }),
  about({
    code: 'fan-out-expired',
    meaning: 'Its fan-out expired with unfinished items.',
    orphans: ['barrier-expired'],
    when: (barrier, c) => isPast(c, barrier.expiresAt),
    sentence: (barrier, c) =>
      `waiting: its fan-out expired ${ago(c, barrier.expiresAt)} with unfinished items (${formatCount(barrier)})`,
    next: (_, c) =>
      bySweep(
        c,
        'Once all its workers have sent a heartbeat, the remaining items are cancelled, and the join fires; if one has died, the expiry is extended by the same time',
        c.config.leaseMs,
      ),
    repair: 'expire',
  }),
  about({
    code: 'counters-drifted',
    meaning: 'The counters of its barrier disagree with its items.',
    orphans: ['counter-drift'],
    when: (barrier) => hasDrifted(barrier),
    sentence: (barrier) => `waiting: the counters of its barrier disagree with its items (${formatCount(barrier)})`,
    next: (_, c) =>
      bySweep(c, 'The barrier is recounted from its ledger once it has been quiet for a while', recountMs),
    repair: 'recount',
  }),
  about({
    code: 'waiting',
    meaning: 'It is waiting for the items of its fan-out.',
    orphans: [],
    when: () => true,
    sentence: (barrier, c) =>
      `waiting for its items: ${formatCount(barrier)}${formatLate(barrier)}${formatExpiry(barrier, c)}`,
    next: (barrier) => ({
      what: barrier.expiresAt
        ? 'It returns to its queue when the last item ends; at the expiry, the remaining items are cancelled'
        : 'It returns to its queue when the last item ends',
      byAt: barrier.expiresAt ? new Date(barrier.expiresAt) : null,
    }),
    repair: null,
  }),
]

function formatGone(barrier: BarrierFacts | undefined): string {
  if (!barrier) return 'the barrier of its stage does not exist'
  return barrier.joinedAt ? 'its barrier has already joined' : 'its barrier was never armed'
}

/** The progress of a fan-out, in words. */
export function formatCount(barrier: BarrierFacts): string {
  const { ledger, failed, cancelled } = barrier
  const bad = [failed !== 0 && `${failed} failed`, cancelled !== 0 && `${cancelled} cancelled`].filter(Boolean)
  const ended = `${endedItems(barrier)} of ${barrier.total ?? 'an unknown number'} have ended${bad.length > 0 ? `, ${bad.join(', ')}` : ''}`
  if (!ledger?.isWhole) return ended
  const live = (['running', 'waiting', 'queued'] as const).filter((state) => ledger[state] > 0)
  return `${ended}${live.map((state) => `, ${ledger[state]} ${state}`).join('')}`
}

function formatLate({ stragglers }: BarrierFacts): string {
  const [first] = stragglers ?? []
  if (first?.state !== 'running') return ''
  return `; running longest: ${first.key ?? first.id}, attempt ${first.attempt}`
}

function formatExpiry({ expiresAt }: BarrierFacts, c: JobCase): string {
  return expiresAt ? `; expires in ${until(c, expiresAt)}` : ''
}
