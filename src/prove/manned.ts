import type { Case } from './case.ts'

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
