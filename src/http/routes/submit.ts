import { HoldfastError } from '../../errors/errors.ts'
import { canonicalSteps } from '../../job/canonical.ts'
import { partsOf, valueSteps } from '../../job/exact-json.ts'
import { RawJson } from '../../job/raw-json.ts'
import type { SubmitOutcome } from '../../job/unique.ts'
import type { SubmitOptions } from '../../submit/prepare.ts'
import { isTraceparent } from '../../trace/trace.ts'
import { accountOf, type Caller, mayDo } from '../caller.ts'
import { check } from '../check.ts'
import { type Call, json, operation } from '../operation.ts'
import { jobWhole, newJob, newJobs, showJob, submitted, uncheckedJobs } from '../schemas/job.ts'
import { text } from '../schemas/primitives.ts'
import { tenantFor } from '../tenant-check.ts'
import { appliedHeader, preferHeader, waitFor, waitMsOf } from '../wait.ts'
import { z } from '../zod.ts'

const idempotencyKey = text(255).min(1).optional().openapi({
  description:
    'Requests with the same key and body return the same response. The same key with a different body is rejected.',
})

const traceparent = z.string().max(200).optional().openapi({ description: 'W3C trace context that the job joins.' })

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

/** How many jobs of a batch are prepared before other requests get a turn. */
const jobsPerTurn = 100

/** Operations that submit one job, or many. */
export const submitOperations = [
  operation({
    id: 'submitJob',
    method: 'post',
    path: '/v1/jobs',
    tag: 'jobs',
    summary: 'Submit a job',
    about:
      'Responds once the job is stored. With `Prefer: wait=10`, returns the whole job if it ends within 10 seconds; this also requires the scope `read`.',
    scope: 'submit',
    headers: submitHeaders,
    body: newJob,
    bodySize: 'input',
    leavesInputs: true,
    answers: {
      200: {
        about: 'The job ended within the time of `Prefer: wait`.',
        schema: jobWhole,
        headers: { 'Preference-Applied': 'The wait that was applied.' },
      },
      202: {
        about: 'The job is stored, by this request or an earlier one with the same key.',
        schema: submitted,
        headers: { Location: 'URL of the job.' },
      },
    },
    problems: [...problems, 'waits_exhausted'],
    async handle(call) {
      const { headers, body, caller, hf } = call
      const { job, input, options } = await prepared(call, body, headers['idempotency-key'], headers.traceparent)
      const submit = () => hf.submit(job, input as never, options)
      const handle = await (call.isLarge ? call.gateway.gate.run(accountOf(caller), submit) : submit())
      const url = `/v1/jobs/${handle.id}`
      // a key that may only submit must not see what becomes of the job
      const waitMs = mayDo(caller, 'read') ? waitMsOf(headers.prefer) : undefined
      const told = { location: url, ...replayed(handle.isNew || body.unique !== undefined), ...appliedHeader(waitMs) }
      if (waitMs) {
        await waitFor(call, handle.id, waitMs)
        const now = await hf.get(handle.id)
        if (now && now.finishedAt !== null) return json(200, showJob(now), told)
      }
      const one = { id: handle.id, kind: job.kind, tenant: ownerOf(caller, body), url, ...outcomeOf(handle, body) }
      return json(202, one, told)
    },
  }),
  operation({
    id: 'submitJobs',
    method: 'post',
    path: '/v1/jobs/batch',
    tag: 'jobs',
    summary: 'Submit many jobs',
    about: 'Submits up to 5,000 jobs of any kind, all or none.',
    scope: 'submit',
    headers: z.object({ 'idempotency-key': idempotencyKey, traceparent }),
    body: newJobs,
    outerBody: uncheckedJobs,
    bodySize: 'large',
    leavesInputs: true,
    answers: {
      202: {
        about: 'All jobs are stored. Listed in the order of the request.',
        schema: z.object({ jobs: z.array(submitted) }),
      },
    },
    problems,
    async handle(call) {
      const { headers, body, caller, hf } = call
      const key = headers['idempotency-key']
      const all: Parameters<typeof hf.submitMixed>[0][number][] = []
      const checked: NewJob[] = []
      for (const [index, unchecked] of body.jobs.entries()) {
        const one = check(`body.jobs.${index}`, newJob, unchecked) as NewJob
        checked.push(one)
        // each job has its own key, and all are bound to the whole batch, so that another batch with the same key is refused as a whole
        const own = key === undefined ? undefined : `${key}#${index}`
        const { job, input, options } = await prepared(
          call,
          one,
          own,
          headers.traceparent,
          index === 0 && key ? body.jobs.length : undefined,
        )
        all.push({ ...options, job, input })
        if (index % jobsPerTurn === 0) await call.rest()
      }
      const handles = await call.gateway.gate.run(accountOf(caller), () => hf.submitMixed(all))
      const jobs = handles.map((handle, index) => {
        const one = checked[index] as NewJob
        const { id } = handle
        return { id, kind: one.kind, tenant: ownerOf(caller, one), url: `/v1/jobs/${id}`, ...outcomeOf(handle, one) }
      })
      const isNew = handles.some((handle, index) => handle.isNew || checked[index]?.unique !== undefined)
      return json(202, { jobs }, replayed(isNew))
    },
  }),
]

/** What became of a unique job. Other responses contain nothing that depends on earlier requests. */
function outcomeOf({ outcome }: { outcome: SubmitOutcome }, { unique }: NewJob): { outcome?: SubmitOutcome } {
  return unique === undefined ? {} : { outcome }
}

function replayed(isNew: boolean): Record<string, string> {
  return isNew ? {} : { 'idempotent-replayed': 'true' }
}

function ownerOf(caller: Caller, { tenant }: NewJob): string {
  return tenantFor(caller, tenant) ?? 'default'
}

/** The kind, input and options of one job. A key in the header covers the whole body; a key in the body covers kind and input. */
async function prepared(
  call: Call,
  body: NewJob,
  idempotency: string | undefined,
  trace: string | undefined,
  count?: number,
) {
  const { kind, input: _, key, tenant: __, runAt, ...options } = body
  if (key !== undefined && idempotency !== undefined)
    throw new HoldfastError(
      'request_invalid',
      'Send either an Idempotency-Key header or a `key` in the body, not both.',
    )
  const covers = { ...options, ...(runAt === undefined ? {} : { runAt }), ...(count === undefined ? {} : { count }) }
  const chosen: SubmitOptions & { tenant: string } = {
    ...(options as SubmitOptions),
    tenant: ownerOf(call.caller, body),
    ...(runAt === undefined ? {} : { runAt: new Date(runAt) }),
    ...(key === undefined ? {} : { key }),
    ...(idempotency === undefined
      ? {}
      : { key: idempotency, ...(Object.keys(covers).length > 0 ? { keyCovers: covers } : {}) }),
    ...(isTraceparent(trace) ? { traceparent: trace } : {}),
  }
  const job = await call.gateway.kinds.named(kind, chosen.tenant)
  const { slices } = call.gateway
  const owner = accountOf(call.caller)
  const needsValue = chosen.key !== undefined || job.input !== undefined
  const input =
    body.input instanceof RawJson && needsValue ? await slices.run(owner, valueSteps(body.input)) : body.input
  // a key is compared by the whole input
  if (chosen.key !== undefined && partsOf(input)) await slices.run(owner, canonicalSteps(input))
  return { job, input, options: chosen }
}
