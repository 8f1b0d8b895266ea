import { raiseByHand } from '../barriers.sql.ts'
import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** Fan-outs of every kind. */
export const fanOut: Scenario = {
  name: 'fan-out',
  provokes:
    'fan-outs that succeed, with failed items, with too many of them, nested, cancelled and redone, with a failing producer and with counters that are too high',
  also: ['job.fail', 'job.cancel', 'job.redo'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    const kinds = context.shuffled(['wide', 'torn', 'flawed', 'over-threshold', 'drawn', 'nest'])
    await Promise.all(kinds.map((kind) => context.submit(kind)))
    await context.ask(raiseByHand, {})
    await Promise.all([cancelDrawn(context), redoFlawed(context)])
    await context.processes.order({ do: 'read', id: context.idOf('wide') })
  },
}

async function cancelDrawn(context: ScenarioContext): Promise<void> {
  const hasItemStarted = async () =>
    (await context.jobs()).some((job) => job.kind === 'drawn' && job.is_part && job.attempt > 0)
  await eventually(hasItemStarted, { ms: waitMs, what: 'an item of the job that is to be cancelled had started' })
  await context.move('cancel', context.idOf('drawn'), ['cancelled'])
}

async function redoFlawed(context: ScenarioContext): Promise<void> {
  const id = context.idOf('flawed')
  await context.untilFinal([id], waitMs)
  await context.move('redo', id, ['queued', 'running', 'waiting', 'partial'])
}

/** A fan-out with a single item. */
export const join: Scenario = {
  name: 'join',
  provokes: 'the settle of a last item, which joins its parent',
  also: ['job.finish'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    await context.submit('lone')
  },
}
