import { mostAtOnce, mostLines, remoteErrorCodes } from '../../worker/remote-given.ts'
import { z } from '../zod.ts'
import { anything, fields, id, name, text, time } from './words.ts'

const milliseconds = z.number().int().min(0).max(2_000_000_000)

const stage = z.strictObject({
  name,
  optional: z.boolean().optional().openapi({ description: 'If it fails for good, the job ends partial.' }),
  timeoutMs: milliseconds.min(1).optional(),
  retries: z.number().int().min(0).max(1_000).optional(),
  backoff: z
    .strictObject({
      baseMs: milliseconds.optional(),
      factor: z.number().min(1).max(1_000).optional(),
      maxMs: z.number().int().min(0).max(2_592_000_000).optional(),
    })
    .optional(),
})

const remoteKind = z.strictObject({
  name,
  queue: name.optional(),
  priority: z.number().int().min(1).max(4).optional(),
  crashBudget: z.number().int().min(1).max(1_000).optional(),
  stages: z.array(stage).min(1).max(100).optional().openapi({ description: 'Without any: one stage called `run`.' }),
})

/** What a remote worker says about itself. */
export const newSession = z
  .strictObject({
    kinds: z
      .array(remoteKind)
      .min(1)
      .max(1_000)
      .openapi({ description: 'At most as many as the setting `kindsPerSession` says.' }),
    host: text(200).optional(),
    pid: z.number().int().min(0).max(2_147_483_647).optional(),
    concurrency: z.number().int().min(1).max(10_000).optional(),
    leaseMs: z
      .number()
      .int()
      .min(500)
      .max(3_600_000)
      .optional()
      .openapi({ description: 'How long the worker is taken for alive after its last heartbeat.' }),
  })
  .openapi('NewSession')

/** The session of a remote worker. */
export const openedSession = z
  .object({
    id: z.string().openapi({
      description:
        'For the path of its requests. With a key for all tenants, the number of the session; else a text that means nothing.',
    }),
    leaseMs: z.number().int(),
    heartbeatMs: z.number().int().openapi({ description: 'How often to send a heartbeat.' }),
    leaseUntil: time,
  })
  .openapi('OpenedSession')

const fence = { id, attempt: z.number().int().min(1).max(2_147_483_647) }

/** Attempts, by their fences. */
export const fences = z.array(z.strictObject(fence)).max(mostAtOnce)

/** An attempt, as a remote worker is given it. */
export const attempt = z
  .object({
    ...fence,
    kind: z.string(),
    queue: z.string(),
    tenant: z.string(),
    stage: z.string().openapi({ description: 'The name of the stage to run.' }),
    input: anything,
    outputs: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'What the earlier stages returned, by their names.' }),
    timeoutMs: z.number(),
    deadlineAt: time.openapi({ description: 'When the attempt is taken for hung and given to another worker.' }),
    failures: z.number().int(),
    submittedAt: time,
    traceparent: z.string().nullable(),
  })
  .openapi('Attempt')

/** An attempt that the worker holds no longer. */
export const lostAttempt = z.object({ ...fence, reason: z.enum(['cancelled', 'lease_lost']) })

/** How an attempt ended. */
export const outcome = z
  .discriminatedUnion('outcome', [
    z.strictObject({ ...fence, outcome: z.literal('succeeded'), output: anything.optional() }),
    z.strictObject({
      ...fence,
      outcome: z.literal('failed'),
      error: z.strictObject({
        message: z.string().max(100_000),
        code: z.enum(remoteErrorCodes).optional(),
        isPermanent: z.boolean().optional().openapi({ description: 'Whether no retry can help.' }),
        stack: z.string().max(100_000).optional(),
      }),
    }),
    z.strictObject({ ...fence, outcome: z.literal('released') }),
  ])
  .openapi('Outcome')

/** How far an attempt is. */
export const report = z
  .strictObject({
    ...fence,
    done: z.number().min(0).optional(),
    total: z.number().min(0).optional(),
    note: z.string().max(2_000).optional(),
    log: z
      .array(z.strictObject({ message: z.string().max(100_000), data: fields.optional() }))
      .max(mostLines)
      .optional()
      .openapi({ description: 'Lines for the timeline of the job.' }),
  })
  .openapi('Report')

/** What became of each outcome. */
export const settled = z
  .object({ results: z.array(z.object({ ...fence, result: z.enum(['settled', 'lease_lost']) })) })
  .openapi('Settled')

/** What became of each report. */
export const written = z
  .object({ results: z.array(z.object({ ...fence, result: z.enum(['written', 'lease_lost']) })) })
  .openapi('Written')
