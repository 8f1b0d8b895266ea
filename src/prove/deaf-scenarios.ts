import type { Case } from './case.ts'
import { eventually } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'
import { cellSettings } from './settings.ts'

const places = 2 * cellSettings.concurrency

/** Handlers that ignore their signal in every place of every worker: they must not keep the next job waiting. */
export const unresponsive: Scenario = {
  name: 'unresponsive',
  provokes: 'handlers that ignore a cancel or a lost lease, in all places of all workers',
  also: ['session.beat', 'job.cancel', 'attempt.lost'],
  behind: { 'session.beat': 'job.claim', 'attempt.lost': 'job.claim' },
  async run(on) {
    await manned(on)
    await on.submitMany('unresponsive', places)
    const ids = on.idsOf('unresponsive')
    await eventually(() => ids.every((id) => hasStarted(on, id)), { ms: waitMs, what: 'all places were taken' })
    await Promise.all(ids.map((id) => on.move('cancel', id, ['cancelled'])))
    await on.untilFinal([await on.submit('short')], waitMs)
  },
}

/** A handler that blocks the event loop: its heartbeat thread gives back what was claimed with it. */
export const blocked: Scenario = {
  name: 'blocked',
  provokes: 'a handler that blocks its process, and the release of what waits behind it',
  also: ['job.release'],
  async run(on) {
    await manned(on)
    await on.submitMany('blocking', cellSettings.concurrency)
    await on.untilFinal(on.idsOf('blocking'), waitMs)
  },
}

function hasStarted(on: Case, id: string): boolean {
  return on.crew.effects.some((effect) => effect.jobId === id)
}
