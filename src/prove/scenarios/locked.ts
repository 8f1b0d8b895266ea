import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { hasStarted, startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A stranger who locks the lease of a running job: its outcome has to wait, and is written once the lease is free. */
export const locked: Scenario = {
  name: 'locked',
  provokes: 'an outcome that waits for a locked row, while its deadline is extended',
  owns: ['lease.extend'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    const id = await context.submit('patient')
    await eventually(() => hasStarted(context, id), { ms: waitMs, what: 'the handler had started' })
    const release = await context.lockRows()
    // what the fault hits can move only once the rows are free
    await context.untilSent('lease.extend', waitMs).finally(release)
    await context.untilFinal([id], waitMs)
  },
}
