import type { Scenario } from '../scenario.ts'
import { startSubmitterAndWorkers } from './steps.ts'

/** Jobs that wait at a gate, one at a time, and are told to slow down once each. */
export const limits: Scenario = {
  name: 'limits',
  provokes:
    'claims through a gate with one slot, jobs that are told to slow down, and a limit that is changed meanwhile',
  async run(context) {
    await startSubmitterAndWorkers(context)
    await Promise.all([context.submitMany('limited', 4), context.submit('short')])
    await context.processes.order({ do: 'limit' })
  },
}
