import type { Job, JobSummary } from '../../engine/job.ts'
import { z } from '../zod.ts'
import { anything, fields, id, jobError, name, next, state, tenant, text, time } from './words.ts'

const summary = {
  id,
  kind: z.string(),
  queue: z.string(),
  tenant: z.string(),
  state,
  stage: z.number().int().openapi({ description: 'The number of the stage that it stands at, from 0.' }),
  attempt: z.number().int(),
  failures: z.number().int().openapi({ description: 'How often the present stage has failed.' }),
  crashes: z.number().int().openapi({ description: 'How many workers the present stage has lost.' }),
  priority: z.number().int(),
  submittedAt: time,
  runAt: time.nullable(),
  deadlineAt: time.nullable(),
  finishedAt: time.nullable(),
  error: jobError.nullable(),
}

/** A job, as lists show it. */
export const jobSummary = z.object(summary).openapi('JobSummary')

/** How far a stage is, as its handler says. */
export const progress = z.object({
  stage: z.number().int(),
  attempt: z.number().int(),
  done: z.number(),
  total: z.number().nullable(),
  note: z.string().nullable(),
  at: z.string(),
})

/** A job, whole. */
export const jobWhole = z
  .object({
    ...summary,
    input: anything,
    meta: z.record(z.string(), z.unknown()).nullable(),
    stages: z.array(z.object({ name: z.string(), optional: z.boolean() })),
    outputs: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'What its stages have returned so far, by stage.' }),
    progress: progress.nullable(),
  })
  .openapi('Job')

/** A page of jobs. */
export const jobPage = z.object({ jobs: z.array(jobSummary), next }).openapi('JobPage')

/** The webhook of one job. */
const webhook = z.strictObject({
  url: z.string().max(2_000),
  secret: z.string().max(200).openapi({ description: 'The signing secret, `whsec_…`.' }),
  types: z.array(z.string().max(100)).max(50).optional(),
  headers: z.record(z.string().max(200), z.string().max(4_000)).optional(),
})

/** A job to submit. */
export const newJob = z
  .strictObject({
    kind: name,
    input: anything.optional(),
    key: text(300)
      .min(1)
      .optional()
      .openapi({ description: 'The same key and input give the same job, however often it is submitted.' }),
    tenant: tenant.optional(),
    runAt: time.optional().openapi({ description: 'Not before this time.' }),
    delayMs: z.number().min(0).max(3_153_600_000_000).optional(),
    priority: z.number().int().min(1).max(4).optional().openapi({ description: '1 (first) to 4 (last).' }),
    meta: fields.optional().openapi({ description: 'Anything small that should travel with the job.' }),
    webhook: webhook.optional(),
  })
  .openapi('NewJob')

/** Jobs to submit. */
export const newJobs = z.strictObject({ jobs: z.array(newJob).min(1).max(5_000) }).openapi('NewJobs')

/** A job that was submitted. It says nothing that changes, so that the same request gets the same answer. */
export const submitted = z.object({ id, kind: z.string(), tenant: z.string(), url: z.string() }).openapi('Submitted')

/** How a job ended. */
export const result = z
  .object({
    id,
    state: z.enum(['succeeded', 'partial']),
    isPartial: z
      .boolean()
      .openapi({ description: 'Whether something is missing: an optional stage failed, or some items did.' }),
    output: anything.openapi({ description: 'What the last stage returned; null if it failed.' }),
    outputs: z.record(z.string(), z.unknown()),
    error: jobError.nullable(),
  })
  .openapi('Result')

/** Where a job stands that has not ended yet. */
export const unfinished = z
  .object({
    id,
    state,
    stage: z.number().int(),
    attempt: z.number().int(),
    progress: progress.nullable(),
    outputs: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'What its stages have returned so far, by stage.' }),
  })
  .openapi('Unfinished')

/** A job without what is nobody's business: where its worker is, and the stack of its error. */
export function showSummary({ sessionId: _, ...job }: JobSummary): object {
  return { ...job, error: showError(job.error) }
}

/** The same for a whole job. */
export function showJob({ sessionId: _, ...job }: Job): object {
  return { ...job, error: showError(job.error) }
}

/** An error without its stack. */
export function showError(error: { code: string; message: string } | null): object | null {
  return error && { code: error.code, message: error.message }
}
