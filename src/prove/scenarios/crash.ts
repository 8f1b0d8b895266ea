import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A job that kills every worker that runs it. */
export const crash: Scenario = {
  name: 'crash',
  provokes:
    'a job that kills its workers: reclaimed by their supervisor, revived by the leader, quarantined, also at an optional stage',
  async run(context) {
    const { processes } = context
    await startSubmitterAndWorkers(context)
    await Promise.all([context.submit('poison'), context.submit('patient'), context.submit('short')])
    const pid = await eventually(() => [...processes.killed][0], {
      ms: waitMs,
      what: 'the poison had killed its worker',
    })
    await processes.order({ do: 'reclaim', pid })
    await context.untilFinal([context.idOf('poison'), context.idOf('patient')], waitMs)
    await context.untilFinal([await context.submit('costly')], waitMs)
  },
}

const poisons = 4
const innocents = 4

/** Poison that keeps coming, next to jobs that have already lost workers to it. */
export const staggeredPoison: Scenario = {
  name: 'staggered-poison',
  provokes: 'one job after another that kills its worker, next to innocent jobs that must survive them all',
  also: ['job.claim_suspects'],
  async run(context) {
    const { effects, killed } = context.processes
    await startSubmitterAndWorkers(context)
    await context.submitMany('innocent', innocents)
    const ids = context.idsOf('innocent')
    for (let poison = 1; poison <= poisons; poison++) {
      const before = effects.length
      await eventually(
        async () =>
          effects.slice(before).some(({ what, jobId }) => what === 'started' && ids.includes(jobId)) ||
          (await context.areFinal(ids)),
        { ms: waitMs, what: 'an innocent job ran' },
      )
      const killedBefore = killed.size
      await context.submit('poison')
      await eventually(() => killed.size > killedBefore, { ms: waitMs, what: 'the poison had killed its worker' })
    }
    await context.untilFinal(ids, waitMs)
  },
}
