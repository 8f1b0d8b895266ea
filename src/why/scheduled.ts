import { finalStates, liveStates } from '../job/machine.ts'
import { ago, type JobCase, later, type Next, sinceMs } from './case.ts'
import { formatEnd } from './ended.ts'
import type { Rule } from './rule.ts'
import type { ScheduledFacts } from './scheduled-facts.ts'

/** A process that runs looks at schedules each second. */
const lookMs = 1_000
const slackMs = 1_000

const slotOf = ({ facts }: JobCase): ScheduledFacts | null => facts.scheduled ?? null

/** Whether it is the last job of its schedule, so that the schedule depends on it. */
const isLast = (c: JobCase) => slotOf(c)?.isLast === true && slotOf(c)?.pausedAt == null

function decided(c: JobCase, what: string): Next {
  return { what, byAt: later(c, lookMs + slackMs) }
}

/** What a job's schedule waits for. */
export const scheduleRules: readonly Rule<JobCase>[] = [
  {
    code: 'replaced',
    states: liveStates,
    meaning: 'A later slot of its schedule replaced it, and it is about to be cancelled.',
    orphans: ['replaced-job-not-cancelled'],
    when: (c) => slotOf(c)?.isReplaced === true,
    sentence: (c) =>
      `replaced: a later slot of schedule \`${slotOf(c)?.schedule}\` took over, and it is not cancelled yet`,
    next: (c) => decided(c, 'A process that works or reaps cancels it'),
    repair: null,
  },
  {
    code: 'slot-buffered',
    states: finalStates,
    meaning: 'It has ended, and a slot of its schedule that waited for it is not submitted yet.',
    orphans: ['buffered-slot-forgotten'],
    when: (c) => isLast(c) && slotOf(c)?.bufferedAt != null,
    sentence: (c) =>
      `${formatEnd(c)}; the slot of schedule \`${slotOf(c)?.schedule}\` that waited for it is not submitted yet`,
    next: (c) => decided(c, 'A process that works or reaps submits it'),
    repair: null,
  },
  {
    code: 'slot-overdue',
    states: finalStates,
    meaning: 'It has ended, and the next slot of its schedule is due, but nobody has decided it.',
    orphans: ['slot-not-ticked'],
    when: (c) => isLast(c) && (sinceMs(c, slotOf(c)?.nextAt) ?? 0) > lookMs + slackMs,
    sentence: (c) =>
      `${formatEnd(c)}; but the next slot of schedule \`${slotOf(c)?.schedule}\` was due ${ago(c, slotOf(c)?.nextAt)}${formatProblem(c)}`,
    next: (c) => ({
      what: `The next process that works or reaps decides it (missed: ${slotOf(c)?.missed})`,
      byAt: later(c, lookMs + slackMs),
    }),
    repair: null,
  },
]

function formatProblem(c: JobCase): string {
  const problem = slotOf(c)?.problem
  return problem ? `, and could not be decided: ${problem}` : ', and no process decides it'
}
