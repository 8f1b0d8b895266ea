import { conflictWays } from '../../job/unique.ts'
import { longestDelayMs } from '../../job/wait.ts'
import type { Job, JobSummary } from '../../reads/job.ts'
import { z } from '../zod.ts'
import { anything, fields, id, jobError, name, next, state, tenant, text, time } from './primitives.ts'

const summary = {
  id,
  kind: z.string(),
  queue: z.string(),
  tenant: z.string(),
  state,
  stage: z.number().int().openapi({ description: 'Index of the current stage, from 0.' }),
  attempt: z.number().int(),
  failures: z.number().int().openapi({ description: 'Failed attempts of the current stage.' }),
  crashes: z.number().int().openapi({ description: 'Workers lost in the current stage.' }),
  priority: z.number().int(),
  submittedAt: time,
  runAt: time.nullable(),
  deadlineAt: time.nullable(),
  finishedAt: time.nullable(),
  error: jobError.nullable(),
}

/** A job, as lists show it. */
export const jobSummary = z.object(summary).openapi('JobSummary')

/** The progress of a stage, as reported by its handler. */
export const progress = z.object({
  stage: z.number().int(),
  attempt: z.number().int(),
  done: z.number(),
  total: z.number().nullable(),
  note: z.string().nullable(),
  at: z.string(),
})

/** A job with everything. */
export const jobWhole = z
  .object({
    ...summary,
    input: anything,
    meta: z.record(z.string(), z.unknown()).nullable(),
    stages: z.array(z.object({ name: z.string(), optional: z.boolean(), signal: z.string().optional() })),
    outputs: z.record(z.string(), z.unknown()).openapi({ description: 'Outputs of completed stages, by stage name.' }),
    progress: progress.nullable(),
  })
  .openapi('Job')

/** A page of jobs. */
export const jobPage = z.object({ jobs: z.array(jobSummary), next }).openapi('JobPage')

/** The webhook of one job. */
const webhook = z.strictObject({
  url: z.string().max(2_000),
  secret: z.string().max(200).openapi({ description: 'Signing secret (`whsec_…`).' }),
  types: z.array(z.string().max(100)).max(50).optional(),
  headers: z.record(z.string().max(200), z.string().max(4_000)).optional(),
})

const unique = z
  .strictObject({
    key: text(300).min(1),
    while: z.enum(['queued', 'live']).optional().openapi({
      description: 'How long the job holds the key: until it is claimed, or until it has ended (default).',
    }),
    windowMs: z
      .number()
      .min(1)
      .max(longestDelayMs)
      .optional()
      .openapi({ description: 'Holds the key for at least this long after the submit.' }),
  })
  .openapi({ description: 'Makes the job unique among the jobs of its kind and tenant.' })

/** A job to submit. */
export const newJob = z
  .strictObject({
    kind: name,
    input: anything.optional(),
    key: text(300)
      .min(1)
      .optional()
      .openapi({ description: 'Idempotency key: the same key and input always return the same job.' }),
    unique: unique.optional(),
    onConflict: z.enum(conflictWays).optional().openapi({
      description:
        'What to do if another job holds the unique key. `keep` (default): submit nothing. `replace`: cancel it if it is queued, and submit this one. `reschedule`: only change when it runs, if it is queued.',
    }),
    tenant: tenant.optional(),
    runAt: time.optional().openapi({ description: 'Run no earlier than this time.' }),
    delayMs: z.number().min(0).max(3_153_600_000_000).optional(),
    priority: z.number().int().min(1).max(4).optional().openapi({ description: '1 (first) to 4 (last).' }),
    limitKey: text(200).min(1).optional().openapi({ description: 'What the limit of the kind counts the job by.' }),
    meta: fields.optional().openapi({ description: 'Small custom data, stored with the job.' }),
    webhook: webhook.optional(),
  })
  .openapi('NewJob')

/** Jobs to submit. */
const batchOf = <T extends z.ZodType>(one: T) => z.strictObject({ jobs: z.array(one).min(1).max(5_000) })

export const newJobs = batchOf(newJob).openapi('NewJobs')

/** The same before each job is validated. */
export const uncheckedJobs = batchOf(z.unknown())

/** A submitted job. It contains nothing that changes, so that the same request gets the same response. */
export const submitted = z
  .object({
    id,
    kind: z.string(),
    tenant: z.string(),
    url: z.string(),
    outcome: z.enum(['submitted', 'kept', 'replaced', 'rescheduled']).optional().openapi({
      description: 'What became of a unique job. `kept` and `rescheduled`: `id` is the job that holds the key.',
    }),
  })
  .openapi('Submitted')

/** How a job ended. */
export const result = z
  .object({
    id,
    state: z.enum(['succeeded', 'partial']),
    isPartial: z
      .boolean()
      .openapi({ description: 'Whether the result is incomplete: an optional stage or some items failed.' }),
    output: anything.openapi({ description: 'Output of the last stage; null if it failed.' }),
    outputs: z.record(z.string(), z.unknown()),
    error: jobError.nullable(),
  })
  .openapi('Result')

/** The state of a job that has not ended yet. */
export const unfinished = z
  .object({
    id,
    state,
    stage: z.number().int(),
    attempt: z.number().int(),
    progress: progress.nullable(),
    outputs: z.record(z.string(), z.unknown()).openapi({ description: 'Outputs of completed stages, by stage name.' }),
  })
  .openapi('Unfinished')

/** A job without what callers must not see: its session, and the stack of its error. */
export function showSummary({ sessionId: _, ...job }: JobSummary): object {
  return { ...job, error: showError(job.error) }
}

/** The same for a job with everything. */
export function showJob({ sessionId: _, ...job }: Job): object {
  return { ...job, error: showError(job.error) }
}

/** An error without its stack. */
export function showError(error: { code: string; message: string } | null): object | null {
  return error && { code: error.code, message: error.message }
}
