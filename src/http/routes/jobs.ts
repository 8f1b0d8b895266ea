import { HoldfastError } from '../../errors/errors.ts'
import { allStates, isState, type State } from '../../job/machine.ts'
import type { Job } from '../../reads/job.ts'
import { byCaller } from '../caller.ts'
import { positionIn } from '../cursor.ts'
import { answerTagged } from '../etag.ts'
import { type Call, json, operation, type Reply } from '../operation.ts'
import type { HttpRequest } from '../request.ts'
import { jobPage, jobWhole, result, showError, showJob, showSummary, unfinished } from '../schemas/job.ts'
import { byId, cursor, flag, inputTime, limit, list, name, state, tenant, text } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { appliedHeader, preferHeader, waitFor, waitMsOf } from '../wait.ts'
import { z } from '../zod.ts'

const moved = z.object({ id: z.string(), state }).openapi('Moved')

/** Operations that read, cancel and redo jobs. */
export const jobOperations = [
  operation({
    id: 'listJobs',
    method: 'get',
    path: '/v1/jobs',
    tag: 'jobs',
    summary: 'List jobs',
    about: 'Newest first. A page can be short or even empty before the end. Continue until `next` is null.',
    scope: 'read',
    isScan: true,
    query: z.strictObject({
      kind: name.optional(),
      queue: name.optional(),
      tenant: tenant.optional(),
      state: list(`Comma-separated list of ${allStates.join(', ')}.`).optional(),
      items: flag.optional().openapi({ description: 'Include fan-out items.' }),
      since: inputTime.optional(),
      until: inputTime.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: { 200: { about: 'A page of jobs.', schema: jobPage, headers: { Link: 'URL of the next page.' } } },
    problems: ['option_invalid'],
    async handle({ hf, gateway, caller, query, request }) {
      const { cursor: from, tenant: asked, state: words, ...filters } = query
      const before = await positionIn(gateway.cursorTokens, 'jobs', from)
      const page = await hf.page({
        ...(filters as object),
        ...scopeFor(caller, asked),
        ...(words === undefined ? {} : { state: words.map(stateOf) }),
        ...(before === undefined ? {} : { before }),
      })
      const next = page.next === null ? null : await gateway.cursorTokens.seal(`jobs ${page.next}`)
      return json(200, { jobs: page.jobs.map(showSummary), next }, linkTo(request, next))
    },
  }),
  operation({
    id: 'getJob',
    method: 'get',
    path: '/v1/jobs/{id}',
    tag: 'jobs',
    summary: 'Get a job',
    about:
      'With `Prefer: wait=10`, responds when the job ends or after 10 seconds. Responds with 304 if `If-None-Match` still matches.',
    scope: 'read',
    params: byId,
    headers: z.object({ prefer: preferHeader, 'if-none-match': z.string().max(1_000).optional() }),
    answers: {
      200: { about: 'The job.', schema: jobWhole, headers: { ETag: 'Changes when the job does.' } },
      304: { about: 'The job has not changed.' },
    },
    problems: ['job_not_found', 'job_gone', 'waits_exhausted'],
    async handle(call) {
      const { job, headers } = await awaited(call)
      return answerTagged(call.request, showJob(job), headers)
    },
  }),
  operation({
    id: 'getResult',
    method: 'get',
    path: '/v1/jobs/{id}/result',
    tag: 'jobs',
    summary: 'Get the result of a job',
    about:
      'With `Prefer: wait=10`, waits up to 10 seconds for the job to end. `isPartial` marks a partial result. While the job is unfinished, returns the outputs of its completed stages.',
    scope: 'read',
    params: byId,
    headers: z.object({ prefer: preferHeader }),
    answers: {
      200: { about: 'The result of the job.', schema: result },
      202: {
        about: 'The job has not ended yet; try again. Includes the outputs of completed stages.',
        schema: unfinished,
        headers: { 'Retry-After': 'Seconds to wait before trying again.' },
      },
    },
    problems: ['job_not_found', 'job_gone', 'job_failed', 'job_cancelled', 'waits_exhausted'],
    async handle(call) {
      const { job, headers } = await awaited(call)
      return resultOf(job, headers)
    },
  }),
  operation({
    id: 'cancelJob',
    method: 'post',
    path: '/v1/jobs/{id}/cancel',
    tag: 'jobs',
    summary: 'Cancel a job',
    about: 'Cancels a queued, waiting or running job. Fails if the job does not exist or has already ended.',
    scope: 'submit',
    params: byId,
    body: z.strictObject({ reason: text(1_000).optional() }),
    answers: { 200: { about: 'The job is cancelled. Its worker is told to stop.', schema: moved } },
    problems: ['job_not_found', 'job_gone', 'move_illegal'],
    async handle({ hf, caller, params, body }) {
      const reason = body.reason === undefined ? {} : { reason: body.reason }
      await hf.cancel(params.id, { ...scopeFor(caller), ...reason, ...byCaller(caller) })
      return json(200, { id: params.id, state: 'cancelled' })
    },
  }),
  operation({
    id: 'redoJob',
    method: 'post',
    path: '/v1/jobs/{id}/redo',
    tag: 'jobs',
    summary: 'Redo a job',
    about: 'Re-runs a failed, partial or cancelled job from the stage that failed or from the start.',
    scope: 'submit',
    params: byId,
    body: z.strictObject({ from: z.enum(['failed', 'start']).optional() }),
    answers: { 200: { about: 'The job is queued again.', schema: moved } },
    problems: ['job_not_found', 'job_gone', 'move_illegal'],
    async handle({ hf, caller, params, body }) {
      const from = body.from === undefined ? {} : { from: body.from }
      await hf.redo(params.id, { ...scopeFor(caller), ...from, ...byCaller(caller) })
      return json(200, { id: params.id, state: 'queued' })
    },
  }),
]

/** The job, once it has ended or the wait is over, and the headers about the wait. */
async function awaited(call: Call<{ id: string }, unknown, { prefer?: string | undefined }>) {
  const waitMs = waitMsOf(call.headers.prefer)
  const headers = appliedHeader(waitMs)
  const job = await jobOf(call)
  if (!waitMs || job.finishedAt !== null) return { job, headers }
  await waitFor(call, job.id, waitMs)
  return { job: await jobOf(call), headers }
}

async function jobOf({ hf, params, caller }: Call<{ id: string }>): Promise<Job> {
  const job = await hf.get(params.id, scopeFor(caller))
  if (!job) throw new HoldfastError('job_not_found', `There is no job ${params.id}.`)
  return job
}

function stateOf(word: string): State {
  if (isState(word)) return word
  throw new HoldfastError(
    'request_invalid',
    `${JSON.stringify(word)} is not a job state. Job states: ${allStates.join(', ')}.`,
  )
}

function resultOf(job: Job, headers: Record<string, string>): Reply {
  const { id, outputs, error, stages, stage, attempt, progress } = job
  const details = { error: showError(error) }
  if (job.state === 'failed')
    throw new HoldfastError('job_failed', `Job ${id} failed: ${error?.message ?? ''}`, { details })
  if (job.state === 'cancelled') throw new HoldfastError('job_cancelled', `Job ${id} was cancelled.`, { details })
  if (job.state !== 'succeeded' && job.state !== 'partial')
    return json(202, { id, state: job.state, stage, attempt, progress, outputs }, { 'retry-after': '1', ...headers })
  // a partial job without an error has finished all its stages, and lacks only some items
  const output = error ? null : (outputs[stages[stage]?.name ?? ''] ?? null)
  return json(
    200,
    { id, state: job.state, isPartial: job.state === 'partial', output, outputs, error: showError(error) },
    headers,
  )
}

/** The header that links to the next page. */
export function linkTo(request: HttpRequest, next: string | null): Record<string, string> {
  if (next === null) return {}
  const url = new URL(request.url)
  url.searchParams.set('cursor', next)
  return { link: `<${url.pathname}${url.search}>; rel="next"` }
}
