import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { isOver } from '../scenario-context.ts'
import { allowEndings, parkedJobs, refuseEndings, retryParkedNow } from './refused.sql.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A database that refuses every ending of a kind, and accepts it later. */
export const refused: Scenario = {
  name: 'refused',
  provokes: 'outcomes that the database refuses in every form: parked, and written once it accepts them',
  owns: [
    'job.park',
    'job.unpark',
    'parked_outcome.due',
    'parked_outcome.postpone',
    'parked_outcome.forget',
    'outcome.remove_twins',
  ],
  // before that, the database refuses them, and nothing that is hit could move
  behind: {
    'job.unpark': 'parked_outcome.postpone',
    'parked_outcome.forget': 'parked_outcome.postpone',
    'outcome.remove_twins': 'parked_outcome.postpone',
  },
  async run(context) {
    const { ask } = context
    await ask(refuseEndings, {})
    await startSubmitterAndWorkers(context)
    const ids = [await context.submit('staged'), await context.submit('short')]
    await eventually(async () => (await ask(parkedJobs, {})).length > 0, { ms: waitMs, what: 'a job was parked' })
    await ask(retryParkedNow, {})
    await context.untilSent('parked_outcome.postpone', waitMs)
    await ask(allowEndings, {})
    // one that was refused at the same moment would be tried again only after ten seconds
    await eventually(
      async () => {
        await ask(retryParkedNow, {})
        return (await context.jobs()).filter(({ id }) => ids.includes(id)).every(isOver)
      },
      { ms: 2 * waitMs, what: 'the outcomes were written', everyMs: 200 },
    )
  },
}
