import { parkedEvents } from '../bus.sql.ts'
import { eventually } from '../deadline.ts'
import { proverGroup } from '../reader.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A group of readers that share the partitions, with events that fail, are parked, replayed and read again. */
export const readers: Scenario = {
  name: 'readers',
  provokes: 'two readers of a group in two partitions, events that fail, one that is parked and replayed, a rewind',
  // before there are jobs, readers find nothing and only ask to be woken
  behind: {
    'event.mark': 'job.submit',
    'event.read': 'job.submit',
    'cursor.move': 'job.submit',
    'parked.due': 'event.park',
  },
  async run(context) {
    const { bus, processes } = context
    await Promise.all([
      startSubmitterAndWorkers(context),
      processes.start('reader-1', 'reader'),
      processes.start('reader-2', 'reader'),
    ])
    const haveShared = async () => (await readingPids(context)).size === 2
    await eventually(haveShared, { ms: waitMs, what: 'the two readers had shared the cursors' })
    const kinds = context.shuffled(['short', 'staged', 'flaky', 'doomed', 'usable', 'chatty'])
    await Promise.all([...kinds.map((kind) => context.submit(kind)), context.submitMany('short', 4)])
    await replayUntilHandled(context)
    await Promise.all([bus.order({ do: 'list-events' }), bus.order({ do: 'read-once' })])
    await bus.order({ do: 'rewind' })
    await processes.replace('reader-2')
  },
}

async function readingPids({ bus }: ScenarioContext): Promise<ReadonlySet<number>> {
  return new Set((await bus.cursors()).flatMap(({ pid }) => pid ?? []))
}

/** The event of the doomed job is parked, fails once more when it is replayed, and is handled after that. */
async function replayUntilHandled(context: ScenarioContext): Promise<void> {
  const parked = () => context.ask(parkedEvents, { group: proverGroup })
  await eventually(async () => (await parked()).length > 0, { ms: waitMs, what: 'an event was parked' })
  await eventually(
    async () => {
      const now = await parked()
      if (now.length === 0) return true
      if (now.every(({ is_due }) => !is_due)) await context.bus.order({ do: 'replay-parked' })
      return false
    },
    { ms: waitMs, what: 'the parked event was handled', everyMs: 50 },
  )
}
