import { HoldfastError } from '../../errors/errors.ts'
import { byCaller, type Caller } from '../caller.ts'
import { positionIn } from '../cursor.ts'
import { json, nothing, operation } from '../operation.ts'
import { cursor, limit, name, next, tenant, text, time } from '../schemas/primitives.ts'
import { scopeFor, tenantFor } from '../tenant-check.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const keyShape = {
  id: z.string(),
  name: z.string(),
  tenant: z.string().nullable().openapi({ description: 'Null for all tenants.' }),
  scopes: z.array(z.string()),
  createdAt: time,
  createdBy: z
    .string()
    .nullable()
    .openapi({ description: 'Who created the key; `key <id>` if it was created with a key.' }),
  expiresAt: time.nullable(),
  revokedAt: time.nullable(),
  revokedBy: z.string().nullable(),
  usedAt: time.nullable(),
}
const apiKey = z.object(keyShape).openapi('ApiKey')

/** Operations on API keys. A tenant's key can create and see only keys of its own tenant. */
export const keyOperations = [
  operation({
    id: 'createKey',
    method: 'post',
    path: '/v1/keys',
    tag: 'keys',
    summary: 'Create an API key',
    about:
      'The new key cannot have more access than the key that creates it or expire later. Without `expiresMs`, both expire together.',
    scope: 'admin',
    body: z.strictObject({
      name: text(200).min(1),
      scopes: z
        .array(z.enum(['submit', 'read', 'work', 'operate', 'admin']))
        .min(1)
        .max(5),
      tenant: name.nullable().optional().openapi({
        description:
          'Null for all tenants. Required with a key for all tenants; omit it with a tenant key, which creates keys for its own tenant.',
      }),
      expiresMs: z.number().positive().max(3_153_600_000_000).optional(),
    }),
    answers: {
      201: {
        about: 'The key. `key` is shown only once.',
        schema: z.object({ ...keyShape, key: z.string() }).openapi('ApiKeyWithText'),
      },
    },
    problems: ['option_invalid', 'key_exceeds_maker'],
    async handle({ hf, caller, body }) {
      const { tenant: asked, expiresMs, ...rest } = body
      const owner = keyOwner(caller, asked)
      const wanted = { ...rest, tenant: owner, ...(expiresMs === undefined ? {} : { expiresMs }) }
      return json(201, await hf.keys.create(wanted, caller.keyId === null ? {} : { maker: caller.keyId }))
    },
  }),
  operation({
    id: 'listKeys',
    method: 'get',
    path: '/v1/keys',
    tag: 'keys',
    summary: 'List API keys',
    about: 'Newest first, without secrets.',
    scope: 'admin',
    isScan: true,
    query: z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of keys.', schema: z.object({ keys: z.array(apiKey), next }) } },
    async handle({ hf, gateway, caller, query, request }) {
      const before = await positionIn(gateway.cursorTokens, 'keys', query.cursor)
      const most = query.limit ?? 100
      const keys = await hf.keys.list({
        ...scopeFor(caller, query.tenant),
        limit: most,
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor = keys.length < most ? null : await gateway.cursorTokens.seal(`keys ${keys.at(-1)?.id}`)
      return json(200, { keys, next: nextCursor }, linkTo(request, nextCursor))
    },
  }),
  operation({
    id: 'revokeKey',
    method: 'delete',
    path: '/v1/keys/{id}',
    tag: 'keys',
    summary: 'Revoke an API key',
    about: 'Every server rejects it within two seconds.',
    scope: 'admin',
    params: z.strictObject({ id: z.string().max(100) }),
    answers: { 204: { about: 'The key is revoked.' } },
    problems: ['key_not_found'],
    async handle({ hf, caller, params }) {
      await hf.keys.revoke(params.id, { ...scopeFor(caller), ...byCaller(caller) })
      return nothing()
    },
  }),
]

/** The tenant of a new key; null for all tenants, which must be requested explicitly: leaving out a field must not grant access to everything. */
function keyOwner(caller: Caller, asked: string | null | undefined): string | null {
  if (caller.tenant !== null) return tenantFor(caller, asked === null ? 'all tenants' : asked) as string
  if (asked !== undefined) return asked
  throw new HoldfastError('request_invalid', 'Set `tenant` to the name of a tenant, or to null for all tenants.')
}
