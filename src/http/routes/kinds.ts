import type { RegisteredKind } from '../../engine/kinds.ts'
import { scopeFor } from '../caller.ts'
import { answerTagged } from '../etag.ts'
import { type Given, operation, type Reply } from '../operation.ts'
import { placeIn } from '../place.ts'
import { cursor, limit, next, tenant, time } from '../schemas/words.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const kind = z
  .object({
    name: z.string(),
    tenant: z.string().nullable().openapi({
      description: 'Whose jobs it decides about; null for all tenants. One that is for all tenants applies first.',
    }),
    queue: z.string(),
    priority: z.number().int(),
    crashBudget: z.number().int(),
    stages: z.array(z.object({ name: z.string(), optional: z.boolean() })),
    seenAt: time,
  })
  .openapi('Kind')

const query = z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() })

/** Kinds that workers have registered. */
export const kindOperations = [
  operation({
    id: 'listKinds',
    method: 'get',
    path: '/v1/kinds',
    tag: 'jobs',
    summary: 'List kinds',
    about:
      'Those that workers have registered, and that can be submitted: first those for all tenants, then by tenant and name. A key of a tenant sees those of no other.',
    scope: 'read',
    query,
    answers: {
      200: {
        about: 'A page of kinds.',
        schema: z.object({ kinds: z.array(kind), next }),
        headers: { Link: 'Where the next page is.' },
      },
      304: { about: 'They are as you know them.' },
    },
    handle: list,
  }),
]

async function list({
  hf,
  door,
  caller,
  request,
  query: asked,
}: Given<unknown, z.output<typeof query>>): Promise<Reply> {
  const most = asked.limit ?? 1000
  const place = await placeIn(door.seal, 'kinds', asked.cursor)
  const kinds = await hf.kinds({
    ...scopeFor(caller, asked.tenant),
    limit: most,
    ...(place === undefined ? {} : { after: JSON.parse(place) as { name: string; tenant: string | null } }),
  })
  const last = kinds.length === most ? kinds.at(-1) : undefined
  const more = last ? await door.seal.seal(`kinds ${placeOf(last)}`) : null
  return answerTagged(request, { kinds, next: more }, linkTo(request, more))
}

const placeOf = ({ name, tenant }: RegisteredKind) => JSON.stringify({ name, tenant })
