import { eventually, TimedOut } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'
import { leaveOldRows, neglected, neglectLog } from './upkeep.sql.ts'

const firstTermMs = 3_000

/** Old data of every kind, which the leader has to clean up. */
export const upkeep: Scenario = {
  name: 'upkeep',
  provokes:
    'a neglected event log, and old readers, deliveries, snapshots, kinds, jobs, bulk operations and idempotency keys',
  owns: [
    'event.lay_partitions',
    'event.drop_partitions',
    'reader.forget',
    'delivery.forget',
    'snapshot.forget',
    'owned_end.forget',
    'kind.refresh',
    'kind.forget',
    'bulk.forget',
    'prune.look',
    'prune.batch',
  ],
  async run(context) {
    // before there is a leader: these duties run when a term begins, and then once a minute
    await context.ask(leaveOldRows, {})
    await context.ask(neglectLog, {})
    await startSubmitterAndWorkers(context)
    await context.submit('short')
    // a duty that was interrupted runs again after a minute, or under the next leader, which is sooner
    await untilCleanedUp(context, firstTermMs).catch(async (error) => {
      if (!(error instanceof TimedOut)) throw error
      for (const name of ['worker-1', 'worker-2']) await context.processes.replace(name)
      await untilCleanedUp(context, waitMs)
    })
  },
}

async function untilCleanedUp({ ask }: ScenarioContext, ms: number): Promise<void> {
  await eventually(async () => (await ask(neglected, {})).length === 0, {
    ms,
    what: 'partitions were created and dropped, and old rows were removed',
  })
}
