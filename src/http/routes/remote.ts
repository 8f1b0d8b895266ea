import type { Fence } from '../../job/id.ts'
import { longestWaitMs, mostAtOnce } from '../../remote/validate.ts'
import type { Caller } from '../caller.ts'
import { keyRefused } from '../keyring.ts'
import { keyFreshMs } from '../known-keys.ts'
import { type Call, json, nothing, operation, type Reply } from '../operation.ts'
import { time } from '../schemas/primitives.ts'
import {
  attempt,
  fences,
  lostAttempt,
  newSession,
  openedSession,
  outcome,
  report,
  settled,
  written,
} from '../schemas/remote.ts'
import { readSessionId, showSessionId } from '../session-id.ts'
import { z } from '../zod.ts'

const sessionId = z.strictObject({
  id: z.string().min(1).max(200).openapi({ description: 'Session id, as returned by `openSession`.' }),
})

const scopeOf = ({ keyId }: Caller) => ({ owner: keyId })

/** Pairs each result with its attempt. */
function beside<R>(asked: readonly { id: string; attempt: number }[], results: R[]): { results: object[] } {
  return { results: asked.map(({ id, attempt }, index) => ({ id, attempt, result: results[index] })) }
}

const tag = 'work'
const lost = ['session_not_found', 'session_ended'] as const

/** Operations for workers in any language: sessions with a lease, claims that wait, outcomes with their fences. */
export const remoteOperations = [
  operation({
    id: 'openSession',
    method: 'post',
    path: '/v1/sessions',
    tag,
    summary: 'Open a session',
    about:
      'Open one session per worker process. Its lease covers all jobs that it claims. Only the key that opened the session can use it. With a tenant key, it claims only jobs of that tenant.',
    scope: 'work',
    body: newSession,
    bodySize: 'input',
    answers: { 201: { about: 'The session.', schema: openedSession, headers: { location: 'URL of the session.' } } },
    problems: ['option_invalid', 'kinds_exhausted', 'sessions_exhausted'],
    async handle({ hf, gateway, caller, body }) {
      const opened = await hf.remote.open({ ...body, tenant: caller.tenant, owner: caller.keyId })
      const id = await showSessionId({ gateway, caller }, opened.id)
      return json(201, { ...opened, id }, { location: `/v1/sessions/${id}` })
    },
  }),
  operation({
    id: 'claimJobs',
    method: 'post',
    path: '/v1/sessions/{id}/claim',
    tag,
    summary: 'Claim jobs',
    about: 'Responds as soon as a job is available, or with an empty list after `waitMs`.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({
      most: z.number().int().min(1).max(mostAtOnce).optional().openapi({ description: 'Default: 1.' }),
      waitMs: z.number().int().min(0).max(longestWaitMs).optional().openapi({ description: 'Default: 0.' }),
    }),
    answers: { 200: { about: 'Attempts to run.', schema: z.object({ attempts: z.array(attempt) }) } },
    problems: [...lost, 'waits_exhausted'],
    handle: claim,
  }),
  operation({
    id: 'beatSession',
    method: 'post',
    path: '/v1/sessions/{id}/heartbeat',
    tag,
    summary: 'Renew the lease',
    about:
      'Send all attempts that the worker holds. Abort the attempts returned in `lost`. Attempts that you leave out are released.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ held: fences }),
    bodySize: 'input',
    answers: {
      200: { about: 'The lease is renewed.', schema: z.object({ leaseUntil: time, lost: z.array(lostAttempt) }) },
    },
    problems: lost,
    handle: async ({ hf, caller, body, ...call }) =>
      json(
        200,
        await hf.remote.beat(await readSessionId({ caller, ...call }), { held: body.held as Fence[] }, scopeOf(caller)),
      ),
  }),
  operation({
    id: 'reportProgress',
    method: 'post',
    path: '/v1/sessions/{id}/progress',
    tag,
    summary: 'Report progress',
    about: 'Reports the progress of attempts and adds log lines to their timelines.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ reports: z.array(report).max(mostAtOnce) }),
    bodySize: 'large',
    answers: { 200: { about: 'One result per attempt.', schema: written } },
    problems: ['session_not_found', 'option_invalid'],
    handle: async ({ hf, caller, body, ...call }) =>
      json(
        200,
        beside(
          body.reports,
          await hf.remote.progress(await readSessionId({ caller, ...call }), body.reports, scopeOf(caller)),
        ),
      ),
  }),
  operation({
    id: 'settleAttempts',
    method: 'post',
    path: '/v1/sessions/{id}/settle',
    tag,
    summary: 'Settle attempts',
    about:
      'Reports how attempts ended. The server decides what happens next by the rules of the kind. Safe to send again if the response was lost.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ outcomes: z.array(outcome).max(mostAtOnce) }),
    bodySize: 'large',
    answers: { 200: { about: 'One result per attempt.', schema: settled } },
    problems: ['session_not_found', 'option_invalid'],
    handle: async ({ hf, caller, body, ...call }) =>
      json(
        200,
        beside(
          body.outcomes,
          await hf.remote.settle(await readSessionId({ caller, ...call }), body.outcomes, scopeOf(caller)),
        ),
      ),
  }),
  operation({
    id: 'releaseAttempts',
    method: 'post',
    path: '/v1/sessions/{id}/release',
    tag,
    summary: 'Release attempts',
    about: 'Returns attempts to the queue without using up a retry.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ attempts: fences }),
    bodySize: 'input',
    answers: { 200: { about: 'One result per attempt.', schema: settled } },
    problems: ['session_not_found'],
    handle: async ({ hf, caller, body, ...call }) =>
      json(
        200,
        beside(
          body.attempts,
          await hf.remote.release(await readSessionId({ caller, ...call }), body.attempts as Fence[], scopeOf(caller)),
        ),
      ),
  }),
  operation({
    id: 'closeSession',
    method: 'delete',
    path: '/v1/sessions/{id}',
    tag,
    summary: 'Close a session',
    about: 'Releases all attempts that it still holds.',
    scope: 'work',
    params: sessionId,
    answers: { 204: { about: 'The session is closed.' } },
    problems: ['session_not_found'],
    async handle({ hf, caller, ...call }) {
      await hf.remote.close(await readSessionId({ caller, ...call }), scopeOf(caller))
      return nothing()
    },
  }),
]

async function claim(
  call: Call<{ id: string }, unknown, unknown, { most?: number | undefined; waitMs?: number | undefined }>,
): Promise<Reply> {
  const { hf, gateway, caller, body } = call
  const id = await readSessionId(call)
  if (!body.waitMs) return json(200, { attempts: await hf.remote.claim(id, body, scopeOf(caller)) })
  const done = gateway.limits.wait(caller)
  const counted = gateway.meter.waits()
  // a key that is revoked while its request waits must not receive a job
  const unwelcome = new AbortController()
  const asking = setInterval(async () => {
    if (!(await gateway.keyring.isStillGood(call.request))) unwelcome.abort()
  }, keyFreshMs)
  try {
    const signal = AbortSignal.any([call.signal, unwelcome.signal])
    const attempts = await hf.remote.claim(id, { ...body, signal }, scopeOf(caller))
    if (unwelcome.signal.aborted && attempts.length === 0) throw keyRefused
    return json(200, { attempts })
  } finally {
    clearInterval(asking)
    counted()
    done()
  }
}
