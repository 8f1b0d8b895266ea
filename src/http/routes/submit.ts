import { setImmediate as immediate } from 'node:timers/promises'
import { HoldfastError } from '../../errors/errors.ts'
import { canonicalSteps } from '../../job/canonical.ts'
import { partsOf } from '../../job/exact-json.ts'
import type { SubmitOptions } from '../../submit/prepare.ts'
import { isTraceparent } from '../../trace/trace.ts'
import { accountOf, type Caller, mayDo, tenantFor } from '../caller.ts'
import { type Given, json, operation } from '../operation.ts'
import { jobWhole, newJob, newJobs, showJob, submitted } from '../schemas/job.ts'
import { text } from '../schemas/words.ts'
import { appliedHeader, preferHeader, waitFor, waitMsOf } from '../wait.ts'
import { z } from '../zod.ts'

const idempotencyKey = text(255).min(1).optional().openapi({
  description: 'The same key and body give the same answer, however often it is sent; another body is refused.',
})

const traceparent = z
  .string()
  .max(200)
  .optional()
  .openapi({ description: 'The trace that the job becomes a part of (W3C).' })

const submitHeaders = z.object({ 'idempotency-key': idempotencyKey, prefer: preferHeader, traceparent })

const problems = [
  'unknown_kind',
  'input_invalid',
  'input_too_large',
  'not_storable',
  'option_invalid',
  'key_conflict',
  'webhook_url_invalid',
  'webhook_url_refused',
  'webhook_secret_invalid',
  'webhook_header_invalid',
  'event_type_unknown',
] as const

type NewJob = z.output<typeof newJob>

/** After so many jobs of a batch, others have a turn. */
const jobsPerTurn = 250

/** Submitting: one job, or many. */
export const submitOperations = [
  operation({
    id: 'submitJob',
    method: 'post',
    path: '/v1/jobs',
    tag: 'jobs',
    summary: 'Submit a job',
    about:
      'Answers once the job is stored. With `Prefer: wait=10` it answers the whole job as soon as it has ended, if it does so in time; for this the key needs the scope `read`, too.',
    scope: 'submit',
    headers: submitHeaders,
    body: newJob,
    bodySize: 'input',
    answers: {
      200: {
        about: 'The job, which has ended within the time of `Prefer: wait`.',
        schema: jobWhole,
        headers: { 'Preference-Applied': 'The wait.' },
      },
      202: {
        about: 'The job was stored, or had been by an earlier request with the same key.',
        schema: submitted,
        headers: { Location: 'Where the job is.' },
      },
    },
    problems: [...problems, 'waits_exhausted'],
    async handle(given) {
      const { headers, body, caller, hf } = given
      const [job, options] = await prepared(given, body, headers['idempotency-key'], headers.traceparent)
      const handle = await hf.submit(job, body.input as never, options)
      const url = `/v1/jobs/${handle.id}`
      // whoever may only submit is shown nothing of what comes of it
      const waitMs = mayDo(caller, 'read') ? waitMsOf(headers.prefer) : undefined
      const told = { location: url, ...replayed(handle.isNew), ...appliedHeader(waitMs) }
      if (waitMs) {
        await waitFor(given, handle.id, waitMs)
        const now = await hf.get(handle.id)
        if (now && now.finishedAt !== null) return json(200, showJob(now), told)
      }
      return json(202, { id: handle.id, kind: job.kind, tenant: ownerOf(caller, body), url }, told)
    },
  }),
  operation({
    id: 'submitJobs',
    method: 'post',
    path: '/v1/jobs/batch',
    tag: 'jobs',
    summary: 'Submit many jobs',
    about: 'Up to 5,000 jobs of any kinds: all of them are stored, or none.',
    scope: 'submit',
    headers: z.object({ 'idempotency-key': idempotencyKey, traceparent }),
    body: newJobs,
    bodySize: 'large',
    answers: { 202: { about: 'All were stored, in this order.', schema: z.object({ jobs: z.array(submitted) }) } },
    problems,
    async handle(given) {
      const { headers, body, caller, hf } = given
      const key = headers['idempotency-key']
      const all: Parameters<typeof hf.submitMixed>[0][number][] = []
      for (const [index, one] of body.jobs.entries()) {
        // each has its own key, and all are bound to the whole batch, so that another batch with the same key is refused as a whole
        const own = key === undefined ? undefined : `${key}#${index}`
        const [job, options] = await prepared(
          given,
          one,
          own,
          headers.traceparent,
          index === 0 && key ? body.jobs.length : undefined,
        )
        all.push({ ...options, job, input: one.input })
        if (index % jobsPerTurn === 0) await immediate()
      }
      const handles = await given.door.gate.run(accountOf(caller), () => hf.submitMixed(all))
      const jobs = handles.map(({ id }, index) => {
        const one = body.jobs[index] as NewJob
        return { id, kind: one.kind, tenant: ownerOf(caller, one), url: `/v1/jobs/${id}` }
      })
      return json(202, { jobs }, replayed(handles.some(({ isNew }) => isNew)))
    },
  }),
]

function replayed(isNew: boolean): Record<string, string> {
  return isNew ? {} : { 'idempotent-replayed': 'true' }
}

function ownerOf(caller: Caller, { tenant }: NewJob): string {
  return tenantFor(caller, tenant) ?? 'default'
}

/** The kind and the options of one job. The key of the header stands for the whole body, that of the body for kind and input. */
async function prepared(
  given: Given,
  body: NewJob,
  idempotency: string | undefined,
  trace: string | undefined,
  count?: number,
) {
  const { kind, input: _, key, tenant: __, runAt, ...options } = body
  if (key !== undefined && idempotency !== undefined)
    throw new HoldfastError('request_invalid', 'Send an Idempotency-Key or a `key` in the body, not both.')
  const covers = { ...options, ...(runAt === undefined ? {} : { runAt }), ...(count === undefined ? {} : { count }) }
  const chosen: SubmitOptions & { tenant: string } = {
    ...(options as SubmitOptions),
    tenant: ownerOf(given.caller, body),
    ...(runAt === undefined ? {} : { runAt: new Date(runAt) }),
    ...(key === undefined ? {} : { key }),
    ...(idempotency === undefined
      ? {}
      : { key: idempotency, ...(Object.keys(covers).length > 0 ? { keyCovers: covers } : {}) }),
    ...(isTraceparent(trace) ? { traceparent: trace } : {}),
  }
  // what a key is compared by is made of the whole input
  if (chosen.key !== undefined && partsOf(body.input))
    await given.door.slices.run(accountOf(given.caller), canonicalSteps(body.input))
  return [await given.door.kinds.named(kind, chosen.tenant), chosen] as const
}
