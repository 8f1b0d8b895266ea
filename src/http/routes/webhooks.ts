import type { Endpoint, NewEndpoint } from '../../webhooks/endpoints.ts'
import { byCaller } from '../caller.ts'
import { positionIn } from '../cursor.ts'
import { json, nothing, operation } from '../operation.ts'
import { byId, cursor, id, limit, next, tenant, text, time } from '../schemas/primitives.ts'
import { actFor, scopeFor, tenantFor } from '../tenant-check.ts'
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
      .openapi({ description: 'Names of the custom headers. Their values are not shown.' }),
    note: z.string().nullable(),
    createdAt: time,
    disabledAt: time.nullable(),
    disabledWhy: z.string().nullable(),
    failingSince: time.nullable(),
    oldSecretUntil: time.nullable(),
  })
  .openapi('Webhook')

const withSecret = endpoint
  .extend({ secret: z.string().openapi({ description: 'Shown only once.' }) })
  .openapi('WebhookWithSecret')

const settable = {
  url: z.string().max(2_000),
  types: z.array(z.string().max(100)).min(1).max(50).optional(),
  items: z.boolean().optional().openapi({ description: 'Whether to send events of fan-out items.' }),
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

/** An endpoint without the values of its headers, which often contain a token. */
function show<E extends Endpoint>({ headers, ...rest }: E): object {
  return { ...rest, headerNames: Object.keys(headers) }
}

/** Operations on webhook endpoints. */
export const webhookOperations = [
  operation({
    id: 'createWebhook',
    method: 'post',
    path: '/v1/webhooks',
    tag: 'webhooks',
    summary: 'Create a webhook',
    about: 'Receives events from now on, signed with a secret that is shown only once.',
    scope: 'operate',
    body: z.strictObject({ ...settable, secret: z.string().max(200).optional(), tenant: tenant.optional() }),
    answers: {
      201: { about: 'The webhook is created.', schema: withSecret, headers: { Location: 'URL of the webhook.' } },
    },
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
    isScan: true,
    query: z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of webhooks.', schema: z.object({ webhooks: z.array(endpoint), next }) } },
    async handle({ hf, gateway, caller, query, request }) {
      const before = await positionIn(gateway.cursorTokens, 'webhooks', query.cursor)
      const most = query.limit ?? 50
      const found = await hf.webhooks.list({
        ...scopeFor(caller, query.tenant),
        limit: most,
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor = found.length < most ? null : await gateway.cursorTokens.seal(`webhooks ${found.at(-1)?.id}`)
      return json(200, { webhooks: found.map(show), next: nextCursor }, linkTo(request, nextCursor))
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
    about: 'Fields you omit stay unchanged.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({ ...settable, url: settable.url.optional() }),
    answers: { 200: { about: 'The updated webhook.', schema: endpoint } },
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
    about: 'Pending deliveries become dead letters, which stay listed until their retention time ends.',
    scope: 'operate',
    params: byId,
    answers: { 204: { about: 'The webhook is removed.' } },
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
    summary: 'Rotate the secret of a webhook',
    about: 'Deliveries are signed with both secrets during the grace period.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({
      graceMs: z.number().min(0).max(31_536_000_000).optional(),
      secret: z.string().max(200).optional(),
    }),
    answers: { 200: { about: 'The webhook with its new secret.', schema: withSecret } },
    problems: ['endpoint_not_found', 'webhook_secret_invalid', 'option_invalid'],
    handle: async ({ hf, caller, params, body }) =>
      json(200, show(await hf.webhooks.rotate(params.id, { ...(body as object), ...actFor(caller) }))),
  }),
  operation({
    id: 'enableWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/enable',
    tag: 'webhooks',
    summary: 'Enable a webhook',
    scope: 'operate',
    params: byId,
    answers: { 200: { about: 'The updated webhook.', schema: endpoint } },
    problems: ['endpoint_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.webhooks.enable(params.id, actFor(caller)))),
  }),
  operation({
    id: 'disableWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/disable',
    tag: 'webhooks',
    summary: 'Disable a webhook',
    about: 'Pending deliveries and new events become dead letters.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({ why: text(1_000).optional() }),
    answers: { 200: { about: 'The updated webhook.', schema: endpoint } },
    problems: ['endpoint_not_found'],
    handle: async ({ hf, caller, params, body }) =>
      json(200, show(await hf.webhooks.disable(params.id, { ...(body as object), ...actFor(caller) }))),
  }),
  operation({
    id: 'testWebhook',
    method: 'post',
    path: '/v1/webhooks/{id}/test',
    tag: 'webhooks',
    summary: 'Test a webhook',
    about: 'Sends one signed test event immediately and returns the result. Tests count as webhooks in flight.',
    scope: 'operate',
    params: byId,
    answers: {
      200: {
        about: 'The result of the test.',
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
