import { longestDelayMs } from '../../job/wait.ts'
import { mostAtOnce, mostLines, remoteErrorCodes } from '../../remote/validate.ts'
import { z } from '../zod.ts'
import { anything, fields, id, keep, name, text, time } from './primitives.ts'

const milliseconds = z.number().int().min(0).max(2_000_000_000)

const stage = z.strictObject({
  name,
  optional: z
    .boolean()
    .optional()
    .openapi({ description: 'If this stage fails permanently, the job ends as partial.' }),
  timeoutMs: milliseconds.min(1).optional(),
  retries: z.number().int().min(0).max(1_000).optional(),
  backoff: z
    .strictObject({
      baseMs: milliseconds.optional(),
      factor: z.number().min(1).max(1_000).optional(),
      maxMs: z.number().int().min(0).max(2_592_000_000).optional(),
    })
    .optional(),
  wait: z
    .strictObject({ signal: name, timeoutMs: z.number().min(1).max(longestDelayMs) })
    .optional()
    .openapi({ description: 'Makes the stage wait for a signal. The server does that; no worker is given the stage.' }),
})

const remoteKind = z.strictObject({
  name,
  queue: name.optional(),
  priority: z.number().int().min(1).max(4).optional(),
  crashBudget: z.number().int().min(1).max(1_000).optional(),
  keep: keep.optional(),
  stages: z.array(stage).min(1).max(100).optional().openapi({ description: 'Default: one stage named `run`.' }),
})

/** What a remote worker says about itself. */
export const newSession = z
  .strictObject({
    kinds: z.array(remoteKind).min(1).max(1_000).openapi({ description: 'Up to the setting `kindsPerSession`.' }),
    host: text(200).optional(),
    pid: z.number().int().min(0).max(2_147_483_647).optional(),
    concurrency: z.number().int().min(1).max(10_000).optional(),
    leaseMs: z
      .number()
      .int()
      .min(500)
      .max(3_600_000)
      .optional()
      .openapi({ description: 'How long the worker counts as alive after its last heartbeat.' }),
  })
  .openapi('NewSession')

/** The session of a remote worker. */
export const openedSession = z
  .object({
    id: z.string().openapi({
      description:
        'Session id for request paths. The session number with a key for all tenants; otherwise an opaque string.',
    }),
    leaseMs: z.number().int(),
    heartbeatMs: z.number().int().openapi({ description: 'Interval at which to send heartbeats.' }),
    leaseUntil: time,
  })
  .openapi('OpenedSession')

const fence = { id, attempt: z.number().int().min(1).max(2_147_483_647) }

/** Attempts, by their fences. */
export const fences = z.array(z.strictObject(fence)).max(mostAtOnce)

/** An attempt, as a remote worker receives it. */
export const attempt = z
  .object({
    ...fence,
    kind: z.string(),
    queue: z.string(),
    tenant: z.string(),
    stage: z.string().openapi({ description: 'Name of the stage to run.' }),
    input: anything,
    outputs: z.record(z.string(), z.unknown()).openapi({ description: 'Outputs of earlier stages, by stage name.' }),
    timeoutMs: z.number(),
    deadlineAt: time.openapi({ description: 'When the attempt counts as hung and goes to another worker.' }),
    failures: z.number().int(),
    submittedAt: time,
    traceparent: z.string().nullable(),
  })
  .openapi('Attempt')

/** An attempt that the worker no longer holds. */
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
        isPermanent: z
          .boolean()
          .optional()
          .openapi({ description: 'Whether the error is permanent, so that retries are skipped.' }),
        stack: z.string().max(100_000).optional(),
      }),
    }),
    z.strictObject({
      ...fence,
      outcome: z.literal('released'),
      retryAfterMs: z.number().int().min(0).max(604_800_000).optional(),
    }),
    z.strictObject({
      ...fence,
      outcome: z.literal('snoozed'),
      delayMs: z.number().min(1).max(longestDelayMs).openapi({ description: 'When to run the stage again.' }),
    }),
  ])
  .openapi('Outcome')

/** The progress of an attempt. */
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
      .openapi({ description: 'Log lines for the timeline of the job.' }),
  })
  .openapi('Report')

/** The result for each outcome. */
export const settled = z
  .object({ results: z.array(z.object({ ...fence, result: z.enum(['settled', 'lease_lost']) })) })
  .openapi('Settled')

/** The result for each report. */
export const written = z
  .object({ results: z.array(z.object({ ...fence, result: z.enum(['written', 'lease_lost']) })) })
  .openapi('Written')
