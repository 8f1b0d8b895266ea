import { isFinal, liveStates, type State } from '../job/machine.ts'
import { bySweep, type JobCase } from './case.ts'
import type { Rule } from './rule.ts'

/** What is wrong with a live item that nobody waits for. It goes before whatever the item itself does. */
export const itemRules: readonly Rule<JobCase>[] = [
  {
    code: 'item-without-barrier',
    states: liveStates,
    meaning: 'It is an item of a fan-out whose barrier does not exist any more.',
    orphans: ['item-without-barrier'],
    when: ({ facts: { itemOf } }) => itemOf !== null && !itemOf.isThere,
    sentence: ({ job }) => `${job.state}, but nobody waits for it: it is an item of a barrier that is gone`,
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
      `${job.state}, but nobody waits for it: its parent ${itemOf?.jobId} is ${itemOf?.parentState ?? 'gone'}`,
    next: (c) => bySweep(c, 'It is cancelled with what is left of its fan-out'),
    repair: 'stop-items',
  },
  {
    code: 'item-stopped',
    states: liveStates,
    meaning: 'It is an item of a fan-out that was stopped.',
    orphans: ['stop-unfinished'],
    when: ({ facts: { itemOf } }) => itemOf?.isThere === true && itemOf.joinedAt === null && itemOf.stoppedAt !== null,
    sentence: ({ job }) => `${job.state}, but its fan-out was stopped: what is left of it is being cancelled`,
    next: (c) => bySweep(c, 'It is cancelled, and the join fires'),
    repair: 'stop-items',
  },
]

function hasEnded(state: State | null): boolean {
  return state === null || isFinal(state)
}
