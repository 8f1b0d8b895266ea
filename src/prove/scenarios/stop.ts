import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** Workers that are stopped while they work. */
export const stop: Scenario = {
  name: 'stop',
  provokes: 'a clean stop while jobs run: release, close, and stepping down as leader',
  async run(context) {
    const { processes } = context
    await startSubmitterAndWorkers(context)
    const ids = await Promise.all([context.submit('held'), context.submit('short')])
    const started = await eventually(() => processes.effects.find((effect) => effect.jobId === ids[0]), {
      ms: waitMs,
      what: 'the long handler had started',
    })
    const runsIn = (name: string) => started.token.startsWith(`${processes.find(name)?.member.pid}-`)
    const order = runsIn('worker-2') ? ['worker-2', 'worker-1'] : ['worker-1', 'worker-2']
    for (const name of order) await processes.replace(name)
  },
}
