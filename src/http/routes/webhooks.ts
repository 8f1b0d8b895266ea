import type { Endpoint, NewEndpoint } from '../../engine/webhooks.ts'
import { actFor, byCaller, scopeFor, tenantFor } from '../caller.ts'
import { json, nothing, operation } from '../operation.ts'
import { placeIn } from '../place.ts'
import { byId, cursor, id, limit, next, tenant, text, time } from '../schemas/words.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const endpoint = z
  .object({
    id,
    tenant: z.string(),
    url: z.string(),
    types: z.array(z.string()),
    items: z.boolean(),
    headerNames: z
      .array(z.string())
      .openapi({ description: 'The headers that are sent along; what they hold is not shown.' }),
    note: z.string().nullable(),
    createdAt: time,
    disabledAt: time.nullable(),
    disabledWhy: z.string().nullable(),
    failingSince: time.nullable(),
    oldSecretUntil: time.nullable(),
  })
  .openapi('Webhook')

const withSecret = endpoint
  .extend({ secret: z.string().openapi({ description: 'Shown this once.' }) })
  .openapi('WebhookWithSecret')

const settable = {
  url: z.string().max(2_000),
  types: z.array(z.string().max(100)).min(1).max(50).optional(),
  items: z.boolean().optional().openapi({ description: 'Whether it gets the events of the items of fan-outs, too.' }),
  headers: z.record(z.string().max(200), z.string().max(4_000)).optional(),
  note: text(1_000).optional(),
}

const urlProblems = [
  'webhook_url_invalid',
  'webhook_url_refused',
  'webhook_secret_invalid',
  'webhook_header_invalid',
  'event_type_unknown',
  'option_invalid',
] as const

/** An endpoint without what its headers hold: they often carry somebody's token. */
function show<E extends Endpoint>({ headers, ...rest }: E): object {
  return { ...rest, headerNames: Object.keys(headers) }
}

/** Where events are sent. */
export const webhookOperations = [
  operation({
    id: 'createWebhook',
    method: 'post',
    path: '/v1/webhooks',
    tag: 'webhooks',
    summary: 'Create a webhook',
    about: 'It gets what happens from here on, signed with the secret that is shown this once.',
    scope: 'operate',
    body: z.strictObject({ ...settable, secret: z.string().max(200).optional(), tenant: tenant.optional() }),
    answers: { 201: { about: 'It was created.', schema: withSecret, headers: { Location: 'Where it is.' } } },
    problems: [...urlProblems, 'too_many_endpoints'],
    async handle({ hf, caller, body }) {
      const owner = tenantFor(caller, body.tenant) ?? 'default'
      const created = await hf.webhooks.create({ ...(body as NewEndpoint), tenant: owner }, byCaller(caller))
      return json(201, show(created), { location: `/v1/webhooks/${created.id}` })
    },
  }),
  operation({
    id: 'listWebhooks',
    method: 'get',
    path: '/v1/webhooks',
    tag: 'webhooks',
    summary: 'List webhooks',
    scope: 'read',
    query: z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of webhooks.', schema: z.object({ webhooks: z.array(endpoint), next }) } },
    async handle({ hf, door, caller, query, request }) {
      const before = await placeIn(door.seal, 'webhooks', query.cursor)
      const most = query.limit ?? 50
      const found = await hf.webhooks.list({
        ...scopeFor(caller, query.tenant),
        limit: most,
        ...(before === undefined ? {} : { before }),
      })
      const place = found.length < most ? null : await door.seal.seal(`webhooks ${found.at(-1)?.id}`)
      return json(200, { webhooks: found.map(show), next: place }, linkTo(request, place))
    },
  }),
  operation({
    id: 'getWebhook',
    method: 'get',
    path: '/v1/webhooks/{id}',
    tag: 'webhooks',
    summary: 'Get a webhook',
    scope: 'read',
    params: byId,
    answers: { 200: { about: 'The webhook.', schema: endpoint } },
    problems: ['endpoint_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.webhooks.get(params.id, scopeFor(caller)))),
  }),
  operation({
    id: 'updateWebhook',
    method: 'patch',
    path: '/v1/webhooks/{id}',
    tag: 'webhooks',
    summary: 'Change a webhook',
    about: 'Only what is given is changed.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({ ...settable, url: settable.url.optional() }),
    answers: { 200: { about: 'The webhook as it is now.', schema: endpoint } },
    problems: ['endpoint_not_found', ...urlProblems],
    handle: async ({ hf, caller, params, body }) =>
      json(200, show(await hf.webhooks.update(params.id, body as Partial<NewEndpoint>, actFor(caller)))),
  }),
  operation({
    id: 'removeWebhook',
    method: 'delete',
    path: '/v1/webhooks/{id}',
    tag: 'webhooks',
    summary: 'Remove a webhook',
    about: 'What waits for it becomes dead letters, which stay listed until they are old.',
    scope: 'operate',
    params: byId,
    answers: { 204: { about: 'It is gone.' } },
    problems: ['endpoint_not_found'],
    async handle({ hf, caller, params }) {
      await hf.webhooks.remove(params.id, actFor(caller))
      return nothing()
    },
  }),
  operation({
    id: 'rotateWebhookSecret',
    method: 'post',
    path: '/v1/webhooks/{id}/rotate',
    tag: 'webhooks',
    summary: 'Give a webhook another secret',
    about: 'For the time of grace, deliveries are signed with both.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({
      graceMs: z.number().min(0).max(31_536_000_000).optional(),
      secret: z.string().max(200).optional(),
    }),
    answers: { 200: { about: 'The webhook with its secret.', schema: withSecret } },
    problems: ['endpoint_not_found', 'webhook_secret_invalid', 'option_invalid'],
    handle: async ({ hf, caller, params, body }) =>
      json(200, show(await hf.webhooks.rotate(params.id, { ...(body as object), ...actFor(caller) }))),
  }),
  operation({
    id: 'enableWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/enable',
    tag: 'webhooks',
    summary: 'Switch a webhook on',
    scope: 'operate',
    params: byId,
    answers: { 200: { about: 'The webhook as it is now.', schema: endpoint } },
    problems: ['endpoint_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.webhooks.enable(params.id, actFor(caller)))),
  }),
  operation({
    id: 'disableWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/disable',
    tag: 'webhooks',
    summary: 'Switch a webhook off',
    about: 'What waits for it, and what comes, becomes dead letters.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({ why: text(1_000).optional() }),
    answers: { 200: { about: 'The webhook as it is now.', schema: endpoint } },
    problems: ['endpoint_not_found'],
    handle: async ({ hf, caller, params, body }) =>
      json(200, show(await hf.webhooks.disable(params.id, { ...(body as object), ...actFor(caller) }))),
  }),
  operation({
    id: 'testWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/test',
    tag: 'webhooks',
    summary: 'Send a sample to a webhook',
    about: 'Signed, at once, once; answers what came of it. Tests count as webhooks in flight.',
    scope: 'operate',
    params: byId,
    answers: {
      200: {
        about: 'What came of it.',
        schema: z
          .object({
            isDelivered: z.boolean(),
            status: z.number().int().nullable(),
            reason: z.string().nullable(),
            ms: z.number(),
          })
          .openapi('WebhookTest'),
      },
    },
    problems: ['endpoint_not_found', 'secret_key_wrong', 'webhooks_busy'],
    async handle({ hf, caller, params }) {
      const came = await hf.webhooks.test(params.id, actFor(caller))
      const isDelivered = came.kind === 'delivered'
      return json(200, {
        isDelivered,
        status: came.status ?? null,
        reason: isDelivered ? null : came.reason,
        ms: came.ms,
      })
    },
  }),
]
