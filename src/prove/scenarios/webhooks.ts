import { cellDeliveries } from '../bus.sql.ts'
import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { receiverPaths } from '../webhook-receiver.ts'
import { cancelStubborn, startSubmitterAndWorkers, waitMs } from './steps.ts'

/** Webhooks of an endpoint and of jobs, to a receiver that fails in every way. */
export const webhooks: Scenario = {
  name: 'webhooks',
  provokes:
    'an endpoint and jobs with webhooks, whose receiver fails, refuses and accepts; replays; changes of an endpoint',
  also: ['group.find', 'group.open', 'event.mark', 'reader.renew', 'cursor.claim'],
  owns: [
    'delivery.plan',
    'delivery.claim',
    'delivery.write',
    'delivery.replay',
    'delivery.replay_all',
    'endpoint.lock',
    'endpoint.create',
  ],
  // a claim that finds nothing proves nothing
  behind: { 'delivery.claim': 'delivery.write' },
  async run(context) {
    const { bus } = context
    const receiver = await bus.startReceiver()
    await startSubmitterAndWorkers(context)
    const [first, rotated] = receiverPaths['/endpoint']
    const [own] = receiverPaths['/job']
    const [elsewhere] = receiverPaths['/elsewhere']
    const endpoint = { url: receiver.url('/endpoint'), secret: first }
    const [id] = await bus.order({ do: 'open-endpoint', webhook: endpoint })
    const webhook = { url: receiver.url('/job'), secret: own }
    await Promise.all([
      ...context.shuffled(['short', 'doomed', 'stubborn', 'usable']).map((kind) => context.submit(kind)),
      context.submit('flaky', webhook),
      context.submit('staged', webhook),
    ])
    await Promise.all([
      cancelStubborn(context),
      bus.order({ do: 'rotate', id: id as string, secret: rotated }),
      bus.order({ do: 'try-endpoint', webhook: { url: receiver.url('/elsewhere'), secret: elsewhere } }),
    ])
    await replay(context)
    await context.processes.replace('worker-2')
  },
}

/** Sends again what was delivered or refused. */
async function replay({ ask, bus }: ScenarioContext): Promise<void> {
  const delivered = await eventually(
    async () => {
      const deliveries = await ask(cellDeliveries, {})
      const hasDead = deliveries.some(({ state }) => state === 'dead')
      return hasDead && deliveries.find(({ state }) => state === 'delivered')
    },
    { ms: waitMs, what: 'one webhook was delivered and one was dead', everyMs: 50 },
  )
  await bus.order({ do: 'list-deliveries' })
  await bus.order({ do: 'replay-delivery', id: delivered.id })
  await bus.order({ do: 'replay-dead' })
}
