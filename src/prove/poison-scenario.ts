import { eventually } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'

const poisons = 4
const innocents = 4

/** Poison that keeps coming, each time beside jobs that have lost workers to others before. */
export const staggeredPoison: Scenario = {
  name: 'staggered-poison',
  provokes: 'one job after another that kills its worker, beside innocent ones that must survive them all',
  also: ['job.claim_suspects'],
  async run(on) {
    await manned(on)
    await on.submitMany('innocent', innocents)
    const ids = on.idsOf('innocent')
    for (let poison = 1; poison <= poisons; poison++) {
      const before = on.crew.effects.length
      await eventually(
        async () =>
          on.crew.effects.slice(before).some(({ what, jobId }) => what === 'started' && ids.includes(jobId)) ||
          (await on.areFinal(ids)),
        { ms: waitMs, what: 'an innocent job ran' },
      )
      const killed = on.crew.killed.size
      await on.submit('poison')
      await eventually(() => on.crew.killed.size > killed, { ms: waitMs, what: 'the poison had killed its worker' })
    }
    await on.untilFinal(ids, waitMs)
  },
}
