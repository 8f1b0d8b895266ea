import { allDeliveryStates, type DeliveryState } from '../../job/delivery-state.ts'
import { actFor, scopeFor } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { placeIn } from '../place.ts'
import { byId, cursor, givenTime, id, limit, next, tenant, time } from '../schemas/words.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const deliveryState = z.enum(allDeliveryStates as [DeliveryState, ...DeliveryState[]])

const delivery = z
  .object({
    id,
    eventId: z.string(),
    type: z.string(),
    tenant: z.string(),
    job: z.string().nullable(),
    endpoint: z.string().nullable().openapi({ description: 'Null for the webhook of a job.' }),
    state: deliveryState,
    createdAt: time,
    nextAt: time.nullable(),
    triedAt: time.nullable(),
    tries: z.number().int(),
    status: z.number().int().nullable(),
    excerpt: z.string().nullable(),
    error: z.string().nullable(),
    ms: z.number().nullable(),
    endedAt: time.nullable(),
  })
  .openapi('Delivery')

const whole = delivery
  .extend({ body: z.string().openapi({ description: 'Exactly what is sent.' }) })
  .openapi('DeliveryWithBody')

const replayedCount = z.object({ replayed: z.number().int() })

/** A delivery without its number in the log, which would tell a tenant how much others do. */
function show<D extends { seq: number }>({ seq: _, ...rest }: D): object {
  return rest
}

/** What became of each send. */
export const deliveryOperations = [
  operation({
    id: 'listDeliveries',
    method: 'get',
    path: '/v1/deliveries',
    tag: 'webhooks',
    summary: 'List deliveries',
    about: 'The latest first.',
    scope: 'read',
    query: z.strictObject({
      webhook: id.optional(),
      job: id.optional(),
      state: deliveryState.optional(),
      tenant: tenant.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: { 200: { about: 'A page of deliveries.', schema: z.object({ deliveries: z.array(delivery), next }) } },
    async handle({ hf, door, caller, query, request }) {
      const { cursor: from, webhook, tenant: asked, limit: most = 50, ...rest } = query
      const before = await placeIn(door.seal, 'deliveries', from)
      const found = await hf.webhooks.deliveries({
        ...(rest as object),
        ...scopeFor(caller, asked),
        limit: most,
        ...(webhook === undefined ? {} : { endpoint: webhook }),
        ...(before === undefined ? {} : { before }),
      })
      const place = found.length < most ? null : await door.seal.seal(`deliveries ${found.at(-1)?.id}`)
      return json(200, { deliveries: found.map(show), next: place }, linkTo(request, place))
    },
  }),
  operation({
    id: 'getDelivery',
    method: 'get',
    path: '/v1/deliveries/{id}',
    tag: 'webhooks',
    summary: 'Get a delivery',
    scope: 'read',
    params: byId,
    answers: { 200: { about: 'The delivery with its body.', schema: whole } },
    problems: ['delivery_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.webhooks.delivery(params.id, scopeFor(caller)))),
  }),
  operation({
    id: 'replayDelivery',
    method: 'post',
    path: '/v1/deliveries/{id}/replay',
    tag: 'webhooks',
    summary: 'Send a delivery once more',
    about: 'Under its own id.',
    scope: 'operate',
    params: byId,
    answers: { 202: { about: 'It is due again.', schema: replayedCount } },
    problems: ['delivery_not_found', 'delivery_pending'],
    async handle({ hf, caller, params }) {
      await hf.webhooks.replay(params.id, actFor(caller))
      return json(202, { replayed: 1 })
    },
  }),
  operation({
    id: 'replayDeliveries',
    method: 'post',
    path: '/v1/deliveries/replay',
    tag: 'webhooks',
    summary: 'Send many deliveries once more',
    about: 'All dead letters, or what was delivered.',
    scope: 'operate',
    body: z.strictObject({
      webhook: id.optional(),
      since: givenTime.optional(),
      state: z.enum(['dead', 'delivered']).optional(),
      tenant: tenant.optional(),
    }),
    answers: { 202: { about: 'They are due again.', schema: replayedCount } },
    async handle({ hf, caller, body }) {
      const { webhook, tenant: asked, ...rest } = body
      const replayed = await hf.webhooks.replayAll({
        ...(rest as object),
        ...actFor(caller, asked),
        ...(webhook === undefined ? {} : { endpoint: webhook }),
      })
      return json(202, { replayed })
    },
  }),
]
