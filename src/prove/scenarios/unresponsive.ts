import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { cellSettings } from '../settings.ts'
import { hasStarted, startSubmitterAndWorkers, waitMs } from './steps.ts'

const slots = 2 * cellSettings.concurrency

/** Handlers that ignore their signal in every slot of every worker: they must not keep the next job waiting. */
export const unresponsive: Scenario = {
  name: 'unresponsive',
  provokes: 'handlers that ignore a cancel or a lost lease, in all slots of all workers',
  also: ['session.beat', 'job.cancel', 'attempt.lost'],
  // before that, a worker that is held up would wait for slots that nobody frees
  behind: { 'session.beat': 'job.cancel', 'attempt.lost': 'job.cancel' },
  isFull: true,
  async run(context) {
    await startSubmitterAndWorkers(context)
    await context.submitMany('unresponsive', slots)
    const ids = context.idsOf('unresponsive')
    await eventually(() => ids.every((id) => hasStarted(context, id)), { ms: waitMs, what: 'all slots were taken' })
    await Promise.all(ids.map((id) => context.move('cancel', id, ['cancelled'])))
    await context.untilFinal([await context.submit('short')], waitMs)
  },
}

/** A handler that blocks the event loop: the heartbeat thread gives back what was claimed with it. */
export const blocked: Scenario = {
  name: 'blocked',
  provokes: 'a handler that blocks its process, and the release of the jobs that wait behind it',
  also: ['job.release'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    await context.submitMany('blocking', cellSettings.concurrency)
    await context.untilFinal(context.idsOf('blocking'), waitMs)
  },
}
