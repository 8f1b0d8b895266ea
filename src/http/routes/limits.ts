import type { LimitTarget, QueueRules } from '../../limits/limits.ts'
import { byCaller } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { name, text, time } from '../schemas/primitives.ts'
import { z } from '../zod.ts'

const concurrency = z
  .number()
  .int()
  .min(0)
  .max(1_000_000)
  .openapi({ description: 'How many jobs may be held by workers at the same time.' })
const rate = z
  .strictObject({ limit: z.number().int().min(1).max(1_000_000), perMs: z.number().min(1).max(2_678_400_000) })
  .openapi({ description: 'How many jobs may start in a span of time.' })
const fair = z.boolean().openapi({ description: 'Whether the tenants of a queue take turns.' })
const weights = z
  .record(name, z.number().min(0.01).max(100))
  .openapi({ description: 'How many turns a tenant gets for one of another. Default: 1.' })
const key = text(200).min(1).openapi({ description: 'A key of the kind, or `*` for every key.' })

const target = z
  .union([z.strictObject({ queue: name }), z.strictObject({ kind: name, key: key.optional() })])
  .openapi('LimitTarget')

const limit = z
  .object({
    target,
    concurrency: concurrency.optional(),
    rate: rate.optional(),
    fair: fair.optional(),
    weights: weights.optional(),
    source: z
      .enum(['declared', 'set'])
      .openapi({ description: 'Whether the code declares it, or it was set at run time.' }),
    running: z
      .number()
      .int()
      .nullable()
      .openapi({ description: 'How many jobs hold a slot now; null for the limit on every key.' }),
    changedAt: time,
    changedBy: z.string().nullable(),
  })
  .openapi('Limit')

const by = text(200).optional()

/** Operations on limits. */
export const limitOperations = [
  operation({
    id: 'listLimits',
    method: 'get',
    path: '/v1/limits',
    tag: 'operate',
    summary: 'List limits',
    about: 'Limits that the code declares, and those that were set at run time.',
    scope: 'read',
    isForAll: true,
    answers: { 200: { about: 'All limits.', schema: z.object({ limits: z.array(limit) }) } },
    handle: async ({ hf }) => json(200, { limits: await hf.limits.list() }),
  }),
  operation({
    id: 'setLimit',
    method: 'post',
    path: '/v1/limits',
    tag: 'operate',
    summary: 'Set a limit',
    about:
      'It takes effect at once, and takes precedence over what the code declares until it is removed. Running jobs above a lower limit keep running.',
    scope: 'operate',
    isForAll: true,
    body: z.strictObject({
      target,
      concurrency: concurrency.optional(),
      rate: rate.optional(),
      fair: fair.optional(),
      weights: weights.optional(),
      by,
    }),
    answers: { 200: { about: 'The limit.', schema: z.object({ limit: limit.nullable() }) } },
    problems: ['option_invalid', 'input_invalid'],
    async handle({ hf, caller, body }) {
      const { target: on, by: who, ...rules } = body
      await hf.limits.set(on as LimitTarget, rules as QueueRules, byCaller(caller, who))
      return json(200, { limit: await hf.limits.get(on as LimitTarget) })
    },
  }),
  operation({
    id: 'removeLimit',
    method: 'post',
    path: '/v1/limits/remove',
    tag: 'operate',
    summary: 'Remove a limit',
    about: 'Removes what was set at run time. What the code declares applies again, and is returned.',
    scope: 'operate',
    isForAll: true,
    body: z.strictObject({ target, by }),
    answers: {
      200: {
        about: 'The limit that applies now; null if there is none.',
        schema: z.object({ limit: limit.nullable() }),
      },
    },
    problems: ['option_invalid', 'input_invalid'],
    async handle({ hf, caller, body }) {
      await hf.limits.remove(body.target as LimitTarget, byCaller(caller, body.by))
      return json(200, { limit: await hf.limits.get(body.target as LimitTarget) })
    },
  }),
]
