import type { Case } from './case.ts'
import { eventually } from './deadline.ts'
import { suspectByHand } from './drain.sql.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'
import { cellSettings } from './settings.ts'

const places = 2 * cellSettings.concurrency
const drains = ['drain.take', 'drain.end']

/** A suspect runs alone, and no worker is ever empty by itself: one of them has to drain for it. */
export const drained: Scenario = {
  name: 'drain',
  provokes: 'a suspect that waits while all workers are busy, until one of them drains for it',
  owns: drains,
  async run(on) {
    await manned(on)
    await eventually(() => hasDrained(on), { ms: waitMs, everyMs: 250, what: 'a worker had drained for a suspect' })
  },
}

/** Whether it has come to that. Until then there is always more to do than there are places, and a suspect among it. */
async function hasDrained(on: Case): Promise<boolean> {
  if (drains.every((statement) => on.hasSent(statement))) return true
  const queued = (await on.jobs()).filter(({ state }) => state === 'queued').length
  if (queued < places) await on.submitMany('patient', places)
  await on.ask(suspectByHand, {})
  return false
}
