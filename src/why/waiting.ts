import {
  ago,
  barrierOf,
  bySweep,
  countedOf,
  hasDrifted,
  isPast,
  type JobCase,
  ledgerTotal,
  plural,
  until,
} from './case.ts'
import type { BarrierFacts } from './facts.ts'
import type { Rule } from './rule.ts'

const states = ['waiting'] as const
/** How long the leader leaves a barrier alone that moves, and how often it compares: see the duty `recount`. */
const recountMs = 10_000

/** A rule about the barrier that the job waits for. */
type BarrierRule = Omit<Rule<JobCase>, 'states' | 'when' | 'sentence' | 'next'> & {
  when: (barrier: BarrierFacts, c: JobCase) => boolean
  sentence: (barrier: BarrierFacts, c: JobCase) => string
  next: (barrier: BarrierFacts, c: JobCase) => ReturnType<Rule<JobCase>['next']>
}

/** Whether a barrier is there that will join the job. */
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

/** What a job waits for that has fanned out. */
export const waitingRules: readonly Rule<JobCase>[] = [
  {
    code: 'no-barrier',
    states,
    meaning: 'It waits, and no barrier is there to join it.',
    orphans: ['waiting-without-barrier'],
    when: (c) => !joins(barrierOf(c)),
    sentence: (c) => `stuck: it waits, but ${goneWords(barrierOf(c))}`,
    next: (c) => bySweep(c, 'It is put back in its queue; whoever claims it joins the fan-out, or opens it anew'),
    repair: 'requeue',
  },
  about({
    code: 'count-negative',
    meaning: 'A counter of its barrier is below zero.',
    orphans: ['negative-count'],
    when: ({ succeeded, failed, cancelled }) => Math.min(succeeded, failed, cancelled) < 0,
    sentence: (barrier) =>
      `waiting: a counter of its barrier is negative (${countWords(barrier)}); only the ledger can tell`,
    next: (_, c) => bySweep(c, 'The barrier is counted anew by its ledger', recountMs),
    repair: 'recount',
  }),
  about({
    code: 'items-lost',
    meaning: 'Items of its barrier are gone from the ledger.',
    orphans: ['items-lost'],
    when: (barrier) => missing(barrier) > 0,
    sentence: (barrier) =>
      `waiting: ${plural(missing(barrier), 'item')} of ${barrier.total} ${missing(barrier) === 1 ? 'is' : 'are'} gone from the ledger${barrier.hasLive ? '; the others go on' : ', and none is left to wait for'}`,
    next: (barrier, c) =>
      barrier.hasLive
        ? { what: 'When the others have ended, those that are gone count as failed, and the join fires', byAt: null }
        : bySweep(c, 'Those that are gone count as failed, and the join fires'),
    repair: 'join',
    mayRepair: (c) => barrierOf(c)?.hasLive === false,
  }),
  about({
    code: 'drained',
    meaning: 'All items of its barrier have ended, and the join never fired.',
    orphans: ['drained-not-joined'],
    when: (barrier) => !barrier.hasLive,
    sentence: (barrier) => `stuck: all ${plural(barrier.total ?? 0, 'item')} have ended, and the join never fired`,
    next: (_, c) => bySweep(c, 'The join fires'),
    repair: 'join',
  }),
  about({
    code: 'stop-unfinished',
    meaning: 'Its fan-out was stopped, and items of it still live.',
    orphans: ['stop-unfinished'],
    when: (barrier) => barrier.stoppedAt !== null,
    sentence: (barrier, c) =>
      `waiting: its fan-out was stopped ${ago(c, barrier.stoppedAt)}, and some of its items are not cancelled yet (${countWords(barrier)})`,
    next: (_, c) => bySweep(c, 'The rest is cancelled, and the join fires'),
    repair: 'stop-items',
  }),
  about({
    code: 'fan-out-expired',
    meaning: 'The expiry of its fan-out has passed with work left.',
    orphans: ['barrier-expired'],
    when: (barrier, c) => isPast(c, barrier.expiresAt),
    sentence: (barrier, c) =>
      `waiting: its fan-out expired ${ago(c, barrier.expiresAt)} with work left (${countWords(barrier)})`,
    next: (_, c) =>
      bySweep(
        c,
        'Once all its workers have been heard of, what is left is cancelled, and the join fires; if one has died, it gets the same time again',
        c.config.leaseMs,
      ),
    repair: 'expire',
  }),
  about({
    code: 'counters-drifted',
    meaning: 'The counters of its barrier disagree with its items.',
    orphans: ['counter-drift'],
    when: (barrier) => hasDrifted(barrier),
    sentence: (barrier) => `waiting: the counters of its barrier disagree with its items (${countWords(barrier)})`,
    next: (_, c) =>
      bySweep(c, 'The barrier is counted anew by its ledger, once it has been quiet for a while', recountMs),
    repair: 'recount',
  }),
  about({
    code: 'waiting',
    meaning: 'It waits for the items of its fan-out, which go on.',
    orphans: [],
    when: () => true,
    sentence: (barrier, c) =>
      `waiting for its items: ${countWords(barrier)}${lateWords(barrier)}${expiryWords(barrier, c)}`,
    next: (barrier) => ({
      what: barrier.expiresAt
        ? 'The last item to end puts it back in its queue; at the expiry, what is left is cancelled'
        : 'The last item to end puts it back in its queue',
      byAt: barrier.expiresAt ? new Date(barrier.expiresAt) : null,
    }),
    repair: null,
  }),
]

function goneWords(barrier: BarrierFacts | undefined): string {
  if (!barrier) return 'the barrier of its stage does not exist'
  return barrier.joinedAt ? 'its barrier has joined already' : 'its barrier was never armed'
}

/** How far a fan-out is. */
export function countWords(barrier: BarrierFacts): string {
  const { ledger, failed, cancelled } = barrier
  const flaws = [failed !== 0 && `${failed} failed`, cancelled !== 0 && `${cancelled} cancelled`].filter(Boolean)
  const ended = `${countedOf(barrier)} of ${barrier.total ?? 'an unknown number'} have ended${flaws.length > 0 ? `, ${flaws.join(', ')}` : ''}`
  if (!ledger?.isWhole) return ended
  const live = (['running', 'waiting', 'queued'] as const).filter((state) => ledger[state] > 0)
  return `${ended}${live.map((state) => `, ${ledger[state]} ${state}`).join('')}`
}

function lateWords({ stragglers }: BarrierFacts): string {
  const [first] = stragglers ?? []
  if (first?.state !== 'running') return ''
  return `; at it the longest: ${first.key ?? first.id}, attempt ${first.attempt}`
}

function expiryWords({ expiresAt }: BarrierFacts, c: JobCase): string {
  return expiresAt ? `; expires in ${until(c, expiresAt)}` : ''
}
