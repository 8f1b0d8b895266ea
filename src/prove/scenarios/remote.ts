import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { signal, untilWaiting } from './flow.ts'
import { suspectByHand } from './remote.sql.ts'
import { hasStarted, startSubmitterAndWorkers, waitMs } from './steps.ts'

/** Remote workers, whose servers talk to the database for them. */
export const remote: Scenario = {
  name: 'remote',
  provokes: 'remote workers that claim, report, settle twice and stop; one of their jobs has already lost workers',
  // only here do these decide what a remote worker is told
  also: ['session.beat', 'job.release', 'session.close', 'signal.await'],
  // before there are jobs, a claim finds nothing
  behind: {
    'job.claim_remote': 'job.submit',
    'job.claim_remote_gated': 'job.submit',
    'attempt.forgotten': 'job.claim_remote',
  },
  async run(context) {
    const { processes } = context
    await startSubmitterAndWorkers(context)
    const kinds = context.shuffled([
      'remote-staged',
      'remote-flaky',
      'remote-usable',
      'remote-chatty',
      'remote-snoozing',
      'remote-approval',
      'remote-limited',
    ])
    await processes.order({ do: 'limit-remote' })
    await Promise.all(kinds.map((kind) => context.submit(kind)))
    const suspect = await context.submit('remote-suspect')
    await context.ask(suspectByHand, { id: suspect })
    await Promise.all([processes.start('remote-1', 'remote'), processes.start('remote-2', 'remote')])
    await eventually(() => hasStarted(context, suspect), { ms: waitMs, what: 'the suspect had started' })
    const approval = context.idOf('remote-approval')
    await untilWaiting(context, approval, { stage: 0, attempt: 1 })
    await signal(context, approval)
    for (const name of context.shuffled(['remote-1', 'remote-2'])) await processes.replace(name)
  },
}
