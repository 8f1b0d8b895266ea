import { ageByHand, drainByHand, driftByHand } from './barriers.sql.ts'
import type { Case } from './case.ts'
import { manned, waitMs } from './manned.ts'
import { endedExecution, ownerName } from './owner.ts'
import type { Scenario } from './scenario.ts'

const never = 600_000
const soonMs = 50

/** Barriers that are used as they should be. */
export const barriers: Scenario = {
  name: 'barriers',
  provokes: 'barriers that are met, armed again, raced for, aborted and opened anew, and empty from the start',
  async run(on) {
    await manned(on)
    await Promise.all(on.shuffled([meet, armAgain, race, abortAndReopen, openEmpty]).map((one) => one(on)))
  },
}

async function meet({ barriers }: Case): Promise<void> {
  await barriers.open({ id: 'met', parts: 5, expiresMs: never, owner: ownerName, ending: 'fired' })
  await barriers.arrive('met', [0, 1, 2, 3, 4])
  await barriers.look('met')
}

async function armAgain({ barriers }: Case): Promise<void> {
  await barriers.open({ id: 'rearmed', parts: 3, ending: 'fired' })
  await barriers.arrive('rearmed', [0, 1])
  await barriers.open({ id: 'rearmed', parts: 3, expiresMs: never, ending: 'fired' })
  await barriers.arrive('rearmed', [1, 2])
}

async function race({ barriers }: Case): Promise<void> {
  await barriers.open({ id: 'raced', parts: 3, ending: 'fired' })
  await Promise.all([barriers.arrive('raced', [0, 1, 2]), barriers.arrive('raced', [2, 1, 0])])
}

async function abortAndReopen({ barriers }: Case): Promise<void> {
  for (const id of ['aborted', 'reopened']) {
    await barriers.open({ id, parts: 2, ending: 'aborted' })
    await barriers.arrive(id, [0])
    await barriers.abort(id)
    await barriers.arriveLate(id, 1)
  }
  await barriers.open({ id: 'reopened', parts: 2, ending: 'fired' })
  await barriers.arrive('reopened', [0, 1])
}

async function openEmpty({ barriers }: Case): Promise<void> {
  await barriers.open({ id: 'empty', parts: 0, ending: 'fired' })
}

/** Barriers that nobody but the reaper can bring to an end. */
export const expiry: Scenario = {
  name: 'expiry',
  provokes:
    'barriers that expire, with an owner, without one and with one that nobody knows; drained, drifted and old ones',
  owns: [
    'owned_barrier.drained',
    'owned_barrier.unchecked',
    'owned_barrier.unowned',
    'owned_barrier.strange',
    'owned_barrier.compare',
    'owned_barrier.take',
    'owned_barrier.forget',
  ],
  async run(on) {
    const { barriers } = on
    await on.crew.fill('submitter', 'submitter')
    // before anybody leads: some duties come once a minute, and first when a term begins
    await Promise.all([letExpire(on), leaveDamaged(on)])
    await Promise.all([manned(on), on.submit('patient')])
    await barriers.arrive('drifted', [1, 2, 3])
    await barriers.untilOver(['overdue', endedExecution, 'unowned', 'drained', 'drifted'], waitMs)
    await Promise.all(['overdue', endedExecution, 'unowned'].map((id) => barriers.arriveLate(id, 1)))
    await barriers.abort('strange')
  },
}

async function letExpire({ barriers }: Case): Promise<void> {
  const expiring = { parts: 2, expiresMs: soonMs }
  await Promise.all([
    barriers.open({ id: 'overdue', ...expiring, owner: ownerName, ending: 'marked' }),
    barriers.open({ id: endedExecution, ...expiring, owner: ownerName, ending: 'removed' }),
    barriers.open({ id: 'strange', ...expiring, owner: 'nobody', ending: 'aborted' }),
    barriers.open({ id: 'unowned', ...expiring, ending: 'closed' }),
  ])
}

async function leaveDamaged({ barriers, ask }: Case): Promise<void> {
  await Promise.all([
    barriers.open({ id: 'old', parts: 1, ending: 'closed' }),
    barriers.open({ id: 'drained', parts: 2, ending: 'fired' }),
    barriers.open({ id: 'drifted', parts: 4, ending: 'fired' }),
  ])
  await barriers.arrive('drifted', [0])
  // too many rather than too few: the count of too few would be believed until it has been quiet for long
  await ask(driftByHand, { id: 'drifted', arrived: 2 })
  await ask(drainByHand, { id: 'drained' })
  await ask(ageByHand, { id: 'old' })
}
