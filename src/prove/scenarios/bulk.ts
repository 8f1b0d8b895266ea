import { randomUUID } from 'node:crypto'
import type { NewBulkOperation } from '../../bulk/request.ts'
import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { bulkProgress, doubleActs, dropPending, leaveFinished } from './bulk.sql.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

const shelf = 'shelf'

/** Bulk operations of every kind, over jobs that run, wait, have failed or are locked. */
export const bulk: Scenario = {
  name: 'bulk',
  provokes: 'bulk operations of every kind, one that is stopped, and one that finds jobs locked',
  owns: ['bulk.claim'],
  also: ['job.cancel', 'job.redo'],
  async run(context) {
    await context.ask(leaveFinished, {})
    await startSubmitterAndWorkers(context)
    await mustOrder(context, { do: 'hold-queue', queue: shelf })
    await Promise.all([
      context.submitMany('doomed', 3),
      context.submitMany('shelved', 3),
      context.submitMany('tireless', 3),
    ])
    await Promise.all([changeShelved(context), redoDoomed(context), cancelTireless(context), deleteLeftovers(context)])
    for (const { job_id, type, bulk: id } of await context.ask(doubleActs, {}))
      context.problems.push(`the bulk operation ${id} wrote ${type} about job ${job_id} more than once`)
  },
}

async function changeShelved(context: ScenarioContext): Promise<void> {
  const filter = { kind: 'shelved' }
  const release = await context.lockRows()
  const locked = await start(context, { operation: 'priority', priority: 1, filter })
  await until(context, locked, ({ skipped }) => skipped > 0).finally(release)
  await until(context, locked, ({ state, done }) => state === 'finished' && done === 3)
  const stopped = await start(context, { operation: 'reschedule', delayMs: 0, filter, rate: 1 })
  await until(context, stopped, ({ done }) => done > 0)
  await mustOrder(context, { do: 'stop-bulk', id: stopped })
  await mustOrder(context, { do: 'free-queue', queue: shelf })
}

async function redoDoomed(context: ScenarioContext): Promise<void> {
  await context.untilFinal(context.idsOf('doomed'), waitMs)
  const id = await start(context, { operation: 'redo', filter: { kind: 'doomed', error: 'permanent' } })
  await until(context, id, ({ state, done }) => state === 'finished' && done === 3)
}

/** A job that is being claimed at that moment is skipped, so this may take several operations. */
async function cancelTireless(context: ScenarioContext): Promise<void> {
  const ids = context.idsOf('tireless')
  const filter = { kind: 'tireless', state: ['queued', 'running'] as ('queued' | 'running')[] }
  for (let tries = 0; tries < 5 && !(await context.areFinal(ids)); tries++) {
    const id = await start(context, { operation: 'cancel', filter })
    await until(context, id, ({ state }) => state === 'finished')
  }
  await context.untilFinal(ids, waitMs)
}

async function deleteLeftovers(context: ScenarioContext): Promise<void> {
  const filter = { kind: 'leftover' }
  const first = await start(context, { operation: 'delete', filter })
  await until(context, first, ({ state, done, skipped }) => state === 'finished' && done === 2 && skipped === 1)
  await context.ask(dropPending, {})
  const second = await start(context, { operation: 'delete', filter })
  await until(context, second, ({ state, done }) => state === 'finished' && done === 1)
}

async function start(context: ScenarioContext, request: Omit<NewBulkOperation, 'id'>): Promise<string> {
  const id = randomUUID()
  await mustOrder(context, { do: 'bulk', id, request })
  return id
}

async function mustOrder(
  { processes }: ScenarioContext,
  order: Parameters<ScenarioContext['processes']['order']>[0],
): Promise<void> {
  const answer = await processes.order(order)
  if (!answer.isDone) throw new Error(`The order ${order.do} was refused: ${answer.message}`)
}

function until(
  { ask }: ScenarioContext,
  id: string,
  is: (progress: { state: string; done: number; skipped: number }) => boolean,
): Promise<unknown> {
  return eventually(
    async () => {
      const [progress] = await ask(bulkProgress, { id })
      return progress !== undefined && is(progress)
    },
    { ms: waitMs, what: `the bulk operation ${id} had come that far` },
  )
}
