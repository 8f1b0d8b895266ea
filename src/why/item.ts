import { isFinal, liveStates, type State } from '../job/machine.ts'
import { bySweep, type JobCase } from './case.ts'
import type { Rule } from './rule.ts'

/** What is wrong with a live item that no job waits for. These come before the rules about its own state. */
export const itemRules: readonly Rule<JobCase>[] = [
  {
    code: 'item-without-barrier',
    states: liveStates,
    meaning: 'It is an item of a fan-out whose barrier no longer exists.',
    orphans: ['item-without-barrier'],
    when: ({ facts: { itemOf } }) => itemOf !== null && !itemOf.isThere,
    sentence: ({ job }) => `${job.state}, but no job waits for it: the barrier of its fan-out no longer exists`,
    next: (c) => bySweep(c, 'It is cancelled; nothing fires'),
    repair: 'stop-items',
  },
  {
    code: 'item-abandoned',
    states: liveStates,
    meaning: 'It is an item of a fan-out whose job has ended.',
    orphans: ['fan-out-abandoned'],
    when: ({ facts: { itemOf } }) =>
      itemOf?.isThere === true && itemOf.joinedAt === null && hasEnded(itemOf.parentState),
    sentence: ({ job, facts: { itemOf } }) =>
      `${job.state}, but no job waits for it: its parent ${itemOf?.jobId} is ${itemOf?.parentState ?? 'gone'}`,
    next: (c) => bySweep(c, 'It is cancelled with the remaining items of its fan-out'),
    repair: 'stop-items',
  },
  {
    code: 'item-stopped',
    states: liveStates,
    meaning: 'It is an item of a fan-out that was stopped.',
    orphans: ['stop-unfinished'],
    when: ({ facts: { itemOf } }) => itemOf?.isThere === true && itemOf.joinedAt === null && itemOf.stoppedAt !== null,
    sentence: ({ job }) => `${job.state}, but its fan-out was stopped, and its remaining items are being cancelled`,
    next: (c) => bySweep(c, 'It is cancelled, and the join fires'),
    repair: 'stop-items',
  },
]

function hasEnded(state: State | null): boolean {
  return state === null || isFinal(state)
}
