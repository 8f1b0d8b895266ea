import type { Case } from './case.ts'
import { eventually, Overdue } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'
import { leaveOldRows, neglected, neglectLog } from './upkeep.sql.ts'

const patienceMs = 3_000

/** What grows old: the log, its readers, what was sent, and what was kept of bad settles, and kinds that nobody serves. */
export const upkeep: Scenario = {
  name: 'upkeep',
  provokes: 'a log that was neglected for long, and readers, deliveries, snapshots and kinds of long ago',
  owns: [
    'event.lay_partitions',
    'event.drop_partitions',
    'reader.forget',
    'delivery.forget',
    'snapshot.forget',
    'owned_end.forget',
    'kind.refresh',
    'kind.forget',
  ],
  async run(on) {
    // before anybody leads: these duties come once a minute, and first when a term begins
    await on.ask(leaveOldRows, {})
    await on.ask(neglectLog, {})
    await manned(on)
    await on.submit('short')
    // a duty that was broken off is done in a minute, or by the next leader, for which we have the patience
    await untilKept(on, patienceMs).catch(async (error) => {
      if (!(error instanceof Overdue)) throw error
      for (const seat of ['worker-1', 'worker-2']) await on.crew.relieve(seat)
      await untilKept(on, waitMs)
    })
  },
}

async function untilKept(on: Case, ms: number): Promise<void> {
  await eventually(async () => (await on.ask(neglected, {})).length === 0, {
    ms,
    what: 'the log was laid and dropped, and what is old was forgotten',
  })
}
