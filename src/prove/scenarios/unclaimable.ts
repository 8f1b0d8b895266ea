import type { Scenario } from '../scenario.ts'
import { startWorkers, waitMs } from './steps.ts'
import { allowClaims, refuseClaims } from './unclaimable.sql.ts'

/** A database that rejects every claim of a kind, and accepts it later. */
export const unclaimable: Scenario = {
  name: 'unclaimable',
  provokes: 'a job that makes every claim fail: found among the others, postponed, and claimed once that works',
  owns: ['job.due_ids', 'job.claim_only', 'job.postpone'],
  async run(context) {
    const { ask } = context
    await context.processes.start('submitter', 'submitter')
    const bad = await context.submit('staged')
    await ask(refuseClaims, {})
    await startWorkers(context)
    await context.untilFinal([await context.submit('short')], waitMs)
    await context.untilSent('job.postpone', waitMs)
    await ask(allowClaims, {})
    await context.untilFinal([bad], waitMs)
  },
}
