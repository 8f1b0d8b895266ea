import { eventually } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import { allowEndings, hurryParked, parkedJobs, refuseEndings } from './refused.sql.ts'
import type { Scenario } from './scenario.ts'

/** A database that refuses every ending of a kind, and accepts it later. */
export const refused: Scenario = {
  name: 'refused',
  provokes: 'outcomes that the database refuses in every form: parked, and written when it lets them',
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
  async run(on) {
    await on.ask(refuseEndings, {})
    await manned(on)
    const ids = [await on.submit('staged'), await on.submit('short')]
    await eventually(async () => (await on.ask(parkedJobs, {})).length > 0, { ms: waitMs, what: 'a job was parked' })
    await on.ask(hurryParked, {})
    await on.untilSent('parked_outcome.postpone', waitMs)
    await on.ask(allowEndings, {})
    await on.untilFinal(ids, 2 * waitMs)
  },
}
