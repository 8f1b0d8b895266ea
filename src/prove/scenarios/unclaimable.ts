import { eventually } from '../deadline.ts'
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
    // a worker whose trial failed shortly before may postpone it once more
    const isOver = async () => {
      await ask(allowClaims, {})
      return context.areFinal([bad])
    }
    await eventually(isOver, { ms: waitMs, what: 'the job was claimed once the database accepted that' })
  },
}
