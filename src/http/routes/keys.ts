import { HoldfastError } from '../../errors/errors.ts'
import { byCaller, type Caller, scopeFor, tenantFor } from '../caller.ts'
import { json, nothing, operation } from '../operation.ts'
import { placeIn } from '../place.ts'
import { cursor, limit, name, next, tenant, text, time } from '../schemas/words.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const keyShape = {
  id: z.string(),
  name: z.string(),
  tenant: z.string().nullable().openapi({ description: 'Null for all tenants.' }),
  scopes: z.array(z.string()),
  createdAt: time,
  createdBy: z.string().nullable().openapi({ description: 'Who made it; `key <id>` if a key did.' }),
  expiresAt: time.nullable(),
  revokedAt: time.nullable(),
  revokedBy: z.string().nullable(),
  usedAt: time.nullable(),
}
const apiKey = z.object(keyShape).openapi('ApiKey')

/** Who may come in. A key of a tenant can make and see only keys of its own. */
export const keyOperations = [
  operation({
    id: 'createKey',
    method: 'post',
    path: '/v1/keys',
    tag: 'keys',
    summary: 'Create an API key',
    about:
      'The new key can do no more than the one that makes it, and expires no later: without `expiresMs`, together with it.',
    scope: 'admin',
    body: z.strictObject({
      name: text(200).min(1),
      scopes: z
        .array(z.enum(['submit', 'read', 'work', 'operate', 'admin']))
        .min(1)
        .max(5),
      tenant: name.nullable().optional().openapi({
        description: 'Null for all tenants; must be said. A key of a tenant makes keys of its own, and leaves it out.',
      }),
      expiresMs: z.number().positive().max(3_153_600_000_000).optional(),
    }),
    answers: {
      201: {
        about: 'The key. Its text is shown this once.',
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
    about: 'The latest first, without their texts.',
    scope: 'admin',
    query: z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of keys.', schema: z.object({ keys: z.array(apiKey), next }) } },
    async handle({ hf, door, caller, query, request }) {
      const before = await placeIn(door.seal, 'keys', query.cursor)
      const most = query.limit ?? 100
      const keys = await hf.keys.list({
        ...scopeFor(caller, query.tenant),
        limit: most,
        ...(before === undefined ? {} : { before }),
      })
      const place = keys.length < most ? null : await door.seal.seal(`keys ${keys.at(-1)?.id}`)
      return json(200, { keys, next: place }, linkTo(request, place))
    },
  }),
  operation({
    id: 'revokeKey',
    method: 'delete',
    path: '/v1/keys/{id}',
    tag: 'keys',
    summary: 'Revoke an API key',
    about: 'Every server refuses it within two seconds.',
    scope: 'admin',
    params: z.strictObject({ id: z.string().max(100) }),
    answers: { 204: { about: 'It is useless.' } },
    problems: ['key_not_found'],
    async handle({ hf, caller, params }) {
      await hf.keys.revoke(params.id, { ...scopeFor(caller), ...byCaller(caller) })
      return nothing()
    },
  }),
]

/** Whose jobs a key will see. All of them only if that was said: by a word left out nobody should get at everything. */
function keyOwner(caller: Caller, asked: string | null | undefined): string | null {
  if (caller.tenant !== null) return tenantFor(caller, asked === null ? 'all tenants' : asked) as string
  if (asked !== undefined) return asked
  throw new HoldfastError(
    'request_invalid',
    'Say whose jobs the key sees: `tenant` with a name, or null for all tenants.',
  )
}
