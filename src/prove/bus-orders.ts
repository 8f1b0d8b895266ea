import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { BusOrder, WebhookOrder } from './orders.ts'
import { proverGroup } from './reader.ts'

/** A tenant without any jobs. */
const elsewhere = 'elsewhere'

/** Carries out an order about events or webhooks. Each can be carried out twice, because a response can be lost. */
export async function carryOutOnBus(hf: Holdfast, order: BusOrder): Promise<string[]> {
  switch (order.do) {
    case 'list-events':
      await hf.events.groups()
      await hf.events.parked(proverGroup)
      for await (const _ of hf.events.watch({ back: 5, follow: false }));
      return []
    case 'replay-parked':
      return [String(await hf.events.replay(proverGroup, { parked: 'all' }))]
    case 'rewind':
      return [String(await hf.events.replay(proverGroup, { from: new Date(0) }))]
    case 'read-once':
      return readOnce(hf)
    case 'open-endpoint': {
      const endpoint = await hf.webhooks.create({ ...order.webhook, types: 'job.*' })
      return [endpoint.id]
    }
    case 'rotate':
      await hf.webhooks.rotate(order.id, { secret: order.secret })
      return []
    case 'try-endpoint':
      return tryEndpoint(hf, order.webhook)
    case 'list-deliveries': {
      const [latest] = await hf.webhooks.deliveries({ limit: 10 })
      if (latest) await hf.webhooks.delivery(latest.id)
      return []
    }
    case 'replay-dead':
      return [String(await hf.webhooks.replayAll({ state: 'dead' }))]
    case 'replay-delivery':
      await hf.webhooks.replay(order.id).catch(ignoring('delivery_pending'))
      return []
  }
}

/** Reads for a group of its own, then forgets it. */
async function readOnce(hf: Holdfast): Promise<string[]> {
  const reading = await hf.events.subscribe('passing', { items: true }, () => {})
  await reading.stop()
  await hf.events.forget('passing').catch(ignoring('group_not_found'))
  return []
}

/** Does everything that can be done with an endpoint, on one that gets no events. */
async function tryEndpoint(hf: Holdfast, webhook: WebhookOrder): Promise<string[]> {
  const { webhooks } = hf
  const { id } = await webhooks.create({ ...webhook, tenant: elsewhere })
  await webhooks.update(id, { note: 'for a while' })
  await webhooks.disable(id)
  await webhooks.enable(id)
  const { kind } = await webhooks.test(id)
  await webhooks.remove(id).catch(ignoring('endpoint_not_found'))
  const listed = await webhooks.list({ tenant: 'default' })
  for (const one of listed) await webhooks.get(one.id)
  return [kind]
}

/** Ignores an error that means that an earlier try, whose response was lost, has done it already. */
function ignoring(code: string) {
  return (error: unknown) => {
    if (!(error instanceof HoldfastError) || error.code !== code) throw error
  }
}
