import { allDeliveryStates, type DeliveryState } from '../../job/delivery-state.ts'
import { positionIn } from '../cursor.ts'
import { json, operation } from '../operation.ts'
import { byId, cursor, id, inputTime, limit, next, tenant, time } from '../schemas/primitives.ts'
import { actFor, scopeFor } from '../tenant-check.ts'
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
    endpoint: z.string().nullable().openapi({ description: 'Null for a webhook that was set on a single job.' }),
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
  .extend({ body: z.string().openapi({ description: 'The exact request body.' }) })
  .openapi('DeliveryWithBody')

const replayedCount = z.object({ replayed: z.number().int() })

/** A delivery without its sequence number, which would tell a tenant how much others do. */
function show<D extends { seq: number }>({ seq: _, ...rest }: D): object {
  return rest
}

/** Operations on webhook deliveries. */
export const deliveryOperations = [
  operation({
    id: 'listDeliveries',
    method: 'get',
    path: '/v1/deliveries',
    tag: 'webhooks',
    summary: 'List deliveries',
    about: 'Newest first.',
    scope: 'read',
    isScan: true,
    query: z.strictObject({
      webhook: id.optional(),
      job: id.optional(),
      state: deliveryState.optional(),
      tenant: tenant.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: { 200: { about: 'A page of deliveries.', schema: z.object({ deliveries: z.array(delivery), next }) } },
    async handle({ hf, gateway, caller, query, request }) {
      const { cursor: from, webhook, tenant: asked, limit: most = 50, ...rest } = query
      const before = await positionIn(gateway.cursorTokens, 'deliveries', from)
      const found = await hf.webhooks.deliveries({
        ...(rest as object),
        ...scopeFor(caller, asked),
        limit: most,
        ...(webhook === undefined ? {} : { endpoint: webhook }),
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor = found.length < most ? null : await gateway.cursorTokens.seal(`deliveries ${found.at(-1)?.id}`)
      return json(200, { deliveries: found.map(show), next: nextCursor }, linkTo(request, nextCursor))
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
    summary: 'Resend a delivery',
    about: 'Keeps its id.',
    scope: 'operate',
    params: byId,
    answers: { 202: { about: 'The delivery is queued again.', schema: replayedCount } },
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
    summary: 'Resend many deliveries',
    about: 'Resends dead letters; with `state: delivered`, deliveries that succeeded.',
    scope: 'operate',
    body: z.strictObject({
      webhook: id.optional(),
      since: inputTime.optional(),
      state: z.enum(['dead', 'delivered']).optional(),
      tenant: tenant.optional(),
    }),
    answers: { 202: { about: 'The deliveries are queued again.', schema: replayedCount } },
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
