import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { startWorkers, waitMs } from './steps.ts'
import { allowClaims, refuseClaims } from './unclaimable.sql.ts'

/** A database that rejects every claim of two kinds, one of which waits at a gate, and accepts them later. */
export const unclaimable: Scenario = {
  name: 'unclaimable',
  provokes:
    'jobs that make every claim fail, one of them at a gate: found among the others, postponed, and claimed once that works',
  owns: ['job.due_ids', 'job.claim_only', 'gate.pick', 'job.claim_only_gated', 'job.postpone'],
  async run(context) {
    const { ask } = context
    await context.processes.start('submitter', 'submitter')
    const bad = await Promise.all([context.submit('staged'), context.submit('limited')])
    await ask(refuseClaims, {})
    await startWorkers(context)
    await context.untilFinal([await context.submit('short')], waitMs)
    await context.untilSent('job.postpone', waitMs)
    // a worker whose trial failed shortly before may postpone it once more
    const isOver = async () => {
      await ask(allowClaims, {})
      return context.areFinal(bad)
    }
    await eventually(isOver, { ms: waitMs, what: 'the jobs were claimed once the database accepted that' })
  },
}
