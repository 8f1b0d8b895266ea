import type { RegisteredKind } from '../../reads/kinds.ts'
import { positionIn } from '../cursor.ts'
import { answerTagged } from '../etag.ts'
import { type Call, operation, type Reply } from '../operation.ts'
import { cursor, keptMs, limit, next, tenant, time } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const kind = z
  .object({
    name: z.string(),
    tenant: z.string().nullable().openapi({
      description:
        'Tenant whose jobs this definition applies to; null for all tenants. A definition for all tenants takes precedence.',
    }),
    queue: z.string(),
    priority: z.number().int(),
    crashBudget: z.number().int(),
    stages: z.array(z.object({ name: z.string(), optional: z.boolean(), signal: z.string().optional() })),
    keep: keptMs.nullable(),
    seenAt: time,
  })
  .openapi('Kind')

const query = z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() })

/** Operations on kinds that workers have registered. */
export const kindOperations = [
  operation({
    id: 'listKinds',
    method: 'get',
    path: '/v1/kinds',
    tag: 'jobs',
    summary: 'List kinds',
    about:
      'Kinds that workers have registered and that you can submit: kinds for all tenants first, then by tenant and name. A tenant key does not see kinds of other tenants.',
    scope: 'read',
    isScan: true,
    query,
    answers: {
      200: {
        about: 'A page of kinds.',
        schema: z.object({ kinds: z.array(kind), next }),
        headers: { Link: 'URL of the next page.' },
      },
      304: { about: 'The kinds have not changed.' },
    },
    handle: list,
  }),
]

async function list({
  hf,
  gateway,
  caller,
  request,
  query: asked,
}: Call<unknown, z.output<typeof query>>): Promise<Reply> {
  const most = asked.limit ?? 1000
  const after = await positionIn(gateway.cursorTokens, 'kinds', asked.cursor)
  const kinds = await hf.kinds({
    ...scopeFor(caller, asked.tenant),
    limit: most,
    ...(after === undefined ? {} : { after: JSON.parse(after) as { name: string; tenant: string | null } }),
  })
  const last = kinds.length === most ? kinds.at(-1) : undefined
  const more = last ? await gateway.cursorTokens.seal(`kinds ${positionOf(last)}`) : null
  return answerTagged(request, { kinds, next: more }, linkTo(request, more))
}

const positionOf = ({ name, tenant }: RegisteredKind) => JSON.stringify({ name, tenant })
