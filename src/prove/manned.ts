import type { Case } from './case.ts'
import { eventually } from './deadline.ts'

/** How long a scenario waits for something that has to come. */
export const waitMs = 15_000

/** Fills the seats that most scenarios need: a submitter and two workers. */
export async function manned(on: Case): Promise<void> {
  await Promise.all([
    on.crew.fill('submitter', 'submitter'),
    on.crew.fill('worker-1', 'worker'),
    on.crew.fill('worker-2', 'worker'),
  ])
}

/** Cancels the stubborn job once its handler has started. */
export async function cancelStubborn(on: Case): Promise<void> {
  const id = on.idOf('stubborn')
  await eventually(() => on.crew.effects.some((effect) => effect.jobId === id), {
    ms: waitMs,
    what: 'the stubborn handler had started',
  })
  await on.move('cancel', id, ['cancelled'])
  // it goes on for a while, and what it reports is refused; if its worker was killed, there is nothing to wait for
  await on.untilSent('refusal.record', 1_000).catch(() => {})
}
