import type { Job } from '../../engine/job.ts'
import { HoldfastError } from '../../errors/errors.ts'
import { allStates, isState, type State } from '../../job/machine.ts'
import type { Ask } from '../ask.ts'
import { byCaller, scopeFor } from '../caller.ts'
import { answerTagged } from '../etag.ts'
import { type Given, json, operation, type Reply } from '../operation.ts'
import { placeIn } from '../place.ts'
import { jobPage, jobWhole, result, showError, showJob, showSummary, unfinished } from '../schemas/job.ts'
import { byId, cursor, flag, givenTime, limit, list, name, state, tenant, text } from '../schemas/words.ts'
import { appliedHeader, preferHeader, waitFor, waitMsOf } from '../wait.ts'
import { z } from '../zod.ts'

const moved = z.object({ id: z.string(), state }).openapi('Moved')

/** Looking at jobs, and moving them. */
export const jobOperations = [
  operation({
    id: 'listJobs',
    method: 'get',
    path: '/v1/jobs',
    tag: 'jobs',
    summary: 'List jobs',
    about: 'The latest first. A page may be short, even empty, although more comes: go on until `next` is null.',
    scope: 'read',
    query: z.strictObject({
      kind: name.optional(),
      queue: name.optional(),
      tenant: tenant.optional(),
      state: list(`Any of ${allStates.join(', ')}, with commas between.`).optional(),
      items: flag.optional().openapi({ description: 'Whether the items of fan-outs are listed too.' }),
      since: givenTime.optional(),
      until: givenTime.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: { 200: { about: 'A page of jobs.', schema: jobPage, headers: { Link: 'Where the next page is.' } } },
    problems: ['option_invalid'],
    async handle({ hf, door, caller, query, request }) {
      const { cursor: from, tenant: asked, state: words, ...filters } = query
      const before = await placeIn(door.seal, 'jobs', from)
      const page = await hf.page({
        ...(filters as object),
        ...scopeFor(caller, asked),
        ...(words === undefined ? {} : { state: words.map(stateOf) }),
        ...(before === undefined ? {} : { before }),
      })
      const next = page.next === null ? null : await door.seal.seal(`jobs ${page.next}`)
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
      'With `Prefer: wait=10` it answers when the job has ended, or else after that time. Answers 304 to an `If-None-Match` that still fits.',
    scope: 'read',
    params: byId,
    headers: z.object({ prefer: preferHeader, 'if-none-match': z.string().max(1_000).optional() }),
    answers: {
      200: { about: 'The job.', schema: jobWhole, headers: { ETag: 'Changes when the job does.' } },
      304: { about: 'It is as you know it.' },
    },
    problems: ['job_not_found', 'waits_exhausted'],
    async handle(given) {
      const { job, headers } = await awaited(given)
      return answerTagged(given.request, showJob(job), headers)
    },
  }),
  operation({
    id: 'getResult',
    method: 'get',
    path: '/v1/jobs/{id}/result',
    tag: 'jobs',
    summary: 'Get the result of a job',
    about:
      'With `Prefer: wait=10` it waits for the end. A partial result says so. While the job goes on, the answer has the outputs of the stages that are done.',
    scope: 'read',
    params: byId,
    headers: z.object({ prefer: preferHeader }),
    answers: {
      200: { about: 'What the job returned.', schema: result },
      202: {
        about: 'The job has not ended yet; ask again. What its stages have returned so far is there already.',
        schema: unfinished,
        headers: { 'Retry-After': 'After how many seconds to ask again.' },
      },
    },
    problems: ['job_not_found', 'job_failed', 'job_cancelled', 'waits_exhausted'],
    async handle(given) {
      const { job, headers } = await awaited(given)
      return resultOf(job, headers)
    },
  }),
  operation({
    id: 'cancelJob',
    method: 'post',
    path: '/v1/jobs/{id}/cancel',
    tag: 'jobs',
    summary: 'Cancel a job',
    about: 'Whether it waits or runs. Whether there is no such job or it has ended already is decided by the write.',
    scope: 'submit',
    params: byId,
    body: z.strictObject({ reason: text(1_000).optional() }),
    answers: { 200: { about: 'It is cancelled; its worker is told to stop.', schema: moved } },
    problems: ['job_not_found', 'move_illegal'],
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
    about: 'Sends a failed, partial or cancelled job round again: from the stage that failed, or from the start.',
    scope: 'submit',
    params: byId,
    body: z.strictObject({ from: z.enum(['failed', 'start']).optional() }),
    answers: { 200: { about: 'It is queued again.', schema: moved } },
    problems: ['job_not_found', 'move_illegal'],
    async handle({ hf, caller, params, body }) {
      const from = body.from === undefined ? {} : { from: body.from }
      await hf.redo(params.id, { ...scopeFor(caller), ...from, ...byCaller(caller) })
      return json(200, { id: params.id, state: 'queued' })
    },
  }),
]

/** The job, once it has ended or the client would wait no longer, and what to tell of the wait. */
async function awaited(given: Given<{ id: string }, unknown, { prefer?: string | undefined }>) {
  const waitMs = waitMsOf(given.headers.prefer)
  const headers = appliedHeader(waitMs)
  const job = await jobOf(given)
  if (!waitMs || job.finishedAt !== null) return { job, headers }
  await waitFor(given, job.id, waitMs)
  return { job: await jobOf(given), headers }
}

async function jobOf({ hf, params, caller }: Given<{ id: string }>): Promise<Job> {
  const job = await hf.get(params.id, scopeFor(caller))
  if (!job) throw new HoldfastError('job_not_found', `There is no job ${params.id}.`)
  return job
}

function stateOf(word: string): State {
  if (isState(word)) return word
  throw new HoldfastError(
    'request_invalid',
    `${JSON.stringify(word)} is not a state of a job; these are: ${allStates.join(', ')}.`,
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
  // without an error all stages have returned, and only some items are missing
  const output = error ? null : (outputs[stages[stage]?.name ?? ''] ?? null)
  return json(
    200,
    { id, state: job.state, isPartial: job.state === 'partial', output, outputs, error: showError(error) },
    headers,
  )
}

/** The header that leads to the next page. */
export function linkTo(request: Ask, next: string | null): Record<string, string> {
  if (next === null) return {}
  const url = new URL(request.url)
  url.searchParams.set('cursor', next)
  return { link: `<${url.pathname}${url.search}>; rel="next"` }
}
