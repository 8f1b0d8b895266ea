import { ageByHand, drainByHand, driftByHand } from '../barriers.sql.ts'
import { endedExecution, ownerName } from '../owner.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { startSubmitterAndWorkers, startWorkers, waitMs } from './steps.ts'

const neverMs = 600_000
const soonMs = 50

/** Barriers that are used as intended. */
export const barriers: Scenario = {
  name: 'barriers',
  provokes: 'barriers that fire, are armed again, raced for, aborted and opened again, and empty from the start',
  async run(context) {
    await startSubmitterAndWorkers(context)
    await Promise.all(context.shuffled([meet, rearm, race, abortAndReopen, openEmpty]).map((step) => step(context)))
  },
}

async function meet({ barriers }: ScenarioContext): Promise<void> {
  await barriers.open({ id: 'met', parts: 5, expiresMs: neverMs, owner: ownerName, ending: 'fired' })
  await barriers.arrive('met', [0, 1, 2, 3, 4])
  await barriers.read('met')
}

async function rearm({ barriers }: ScenarioContext): Promise<void> {
  await barriers.open({ id: 'rearmed', parts: 3, ending: 'fired' })
  await barriers.arrive('rearmed', [0, 1])
  await barriers.open({ id: 'rearmed', parts: 3, expiresMs: neverMs, ending: 'fired' })
  await barriers.arrive('rearmed', [1, 2])
}

async function race({ barriers }: ScenarioContext): Promise<void> {
  await barriers.open({ id: 'raced', parts: 3, ending: 'fired' })
  await Promise.all([barriers.arrive('raced', [0, 1, 2]), barriers.arrive('raced', [2, 1, 0])])
}

async function abortAndReopen({ barriers }: ScenarioContext): Promise<void> {
  for (const id of ['aborted', 'reopened']) {
    await barriers.open({ id, parts: 2, ending: 'aborted' })
    await barriers.arrive(id, [0])
    await barriers.abort(id)
    await barriers.arriveLate(id, 1)
  }
  await barriers.open({ id: 'reopened', parts: 2, ending: 'fired' })
  await barriers.arrive('reopened', [0, 1])
}

async function openEmpty({ barriers }: ScenarioContext): Promise<void> {
  await barriers.open({ id: 'empty', parts: 0, ending: 'fired' })
}

/** Barriers that only the reaper can bring to an end. */
export const expiry: Scenario = {
  name: 'expiry',
  provokes: 'barriers that expire, with an owner, without one and with an unknown one; drained, drifted and old ones',
  owns: [
    'owned_barrier.drained',
    'owned_barrier.unchecked',
    'owned_barrier.unowned',
    'owned_barrier.strange',
    'owned_barrier.compare',
    'owned_barrier.take',
    'owned_barrier.forget',
  ],
  async run(context) {
    const { barriers } = context
    await context.processes.start('submitter', 'submitter')
    // before there is a leader: some duties run when a term begins, and then once a minute
    await Promise.all([letExpire(context), leaveDamaged(context)])
    await Promise.all([startWorkers(context), context.submit('patient')])
    await barriers.arrive('drifted', [1, 2, 3])
    await barriers.untilOver(['overdue', endedExecution, 'unowned', 'drained', 'drifted'], waitMs)
    await Promise.all(['overdue', endedExecution, 'unowned'].map((id) => barriers.arriveLate(id, 1)))
    await barriers.abort('strange')
  },
}

async function letExpire({ barriers }: ScenarioContext): Promise<void> {
  const expiring = { parts: 2, expiresMs: soonMs }
  await Promise.all([
    barriers.open({ id: 'overdue', ...expiring, owner: ownerName, ending: 'marked' }),
    barriers.open({ id: endedExecution, ...expiring, owner: ownerName, ending: 'removed' }),
    barriers.open({ id: 'strange', ...expiring, owner: 'nobody', ending: 'aborted' }),
    barriers.open({ id: 'unowned', ...expiring, ending: 'closed' }),
  ])
}

async function leaveDamaged({ barriers, ask }: ScenarioContext): Promise<void> {
  await Promise.all([
    barriers.open({ id: 'old', parts: 1, ending: 'closed' }),
    barriers.open({ id: 'drained', parts: 2, ending: 'fired' }),
    barriers.open({ id: 'drifted', parts: 4, ending: 'fired' }),
  ])
  await barriers.arrive('drifted', [0])
  // too many rather than too few: a count that is too low is trusted until the barrier has been quiet for long
  await ask(driftByHand, { id: 'drifted', arrived: 2 })
  await ask(drainByHand, { id: 'drained' })
  await ask(ageByHand, { id: 'old' })
}
