import { webhookGroup } from '../../events/group-name.ts'
import { cellDeliveries, parkedEvents } from '../bus.sql.ts'
import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { receiverPaths } from '../webhook-receiver.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'
import { acceptDeliveries, refuseDeliveries, replanNow } from './undeliverable.sql.ts'

/** A database that rejects some webhooks when they are planned and others when they are claimed, and accepts them later. */
export const undeliverable: Scenario = {
  name: 'undeliverable',
  provokes:
    'webhooks that make every plan or every claim fail: put off without delaying others, and sent once that works',
  owns: ['delivery.due', 'delivery.claim_only', 'delivery.plan_parked'],
  // before that, the database rejects it, and nothing that is hit could move
  behind: { 'delivery.plan_parked': 'parked.failed' },
  async run(context) {
    const { ask, bus } = context
    const receiver = await bus.startReceiver()
    await startSubmitterAndWorkers(context)
    await ask(refuseDeliveries, {})
    const [secret] = receiverPaths['/endpoint']
    await bus.order({ do: 'open-endpoint', webhook: { url: receiver.url('/endpoint'), secret } })
    await context.submit('staged')
    const isDelivered = async () => (await ask(cellDeliveries, {})).some(({ state }) => state === 'delivered')
    await eventually(isDelivered, { ms: waitMs, what: 'another webhook was delivered', everyMs: 50 })
    await context.untilSent('delivery.claim_only', waitMs)
    await rejectOnceMore(context)
    await acceptAll(context)
  },
}

/** Has the event that was parked planned in vain. */
async function rejectOnceMore(context: ScenarioContext): Promise<void> {
  const isRejected = async () => {
    await context.ask(replanNow, { group: webhookGroup })
    return context.hasSent('parked.failed')
  }
  await eventually(isRejected, { ms: waitMs, what: 'the parked event was planned in vain', everyMs: 100 })
}

/** Accepts everything until all of it is planned and has been claimed. A process that failed shortly before may put it off once more. */
async function acceptAll({ ask }: ScenarioContext): Promise<void> {
  const isAccepted = async () => {
    await ask(acceptDeliveries, {})
    await ask(replanNow, { group: webhookGroup })
    const parked = await ask(parkedEvents, { group: webhookGroup })
    const deliveries = await ask(cellDeliveries, {})
    return parked.length === 0 && deliveries.every(({ state }) => state !== 'pending')
  }
  await eventually(isAccepted, { ms: 2 * waitMs, what: 'the webhooks were planned and sent', everyMs: 200 })
}
