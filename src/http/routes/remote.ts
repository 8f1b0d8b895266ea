import type { Fence } from '../../job/id.ts'
import { longestWaitMs, mostAtOnce } from '../../worker/remote-given.ts'
import type { Caller } from '../caller.ts'
import { keyRefused } from '../keyring.ts'
import { keyFreshMs } from '../known-keys.ts'
import { type Given, json, nothing, operation, type Reply } from '../operation.ts'
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
import { time } from '../schemas/words.ts'
import { readSessionId, showSessionId } from '../session-id.ts'
import { z } from '../zod.ts'

const sessionId = z.strictObject({
  id: z.string().min(1).max(200).openapi({ description: 'As `openSession` answered it.' }),
})

const scopeOf = ({ keyId }: Caller) => ({ owner: keyId })

/** Each answer beside the attempt that it is about. */
function beside<R>(asked: readonly { id: string; attempt: number }[], results: R[]): { results: object[] } {
  return { results: asked.map(({ id, attempt }, index) => ({ id, attempt, result: results[index] })) }
}

const tag = 'work'
const lost = ['session_not_found', 'session_ended'] as const

/** For workers in any language: a session with a lease, claims that wait, outcomes with their fences. */
export const remoteOperations = [
  operation({
    id: 'openSession',
    method: 'post',
    path: '/v1/sessions',
    tag,
    summary: 'Open a session',
    about:
      'One per worker process. Its lease covers all that it claims, and it is found by no other key. With the key of a tenant, it claims only that tenant’s jobs.',
    scope: 'work',
    body: newSession,
    bodySize: 'input',
    answers: { 201: { about: 'The session.', schema: openedSession, headers: { location: 'Where it is.' } } },
    problems: ['option_invalid', 'kinds_exhausted', 'sessions_exhausted'],
    async handle({ hf, door, caller, body }) {
      const opened = await hf.remote.open({ ...body, tenant: caller.tenant, owner: caller.keyId })
      const id = await showSessionId({ door, caller }, opened.id)
      return json(201, { ...opened, id }, { location: `/v1/sessions/${id}` })
    },
  }),
  operation({
    id: 'claimJobs',
    method: 'post',
    path: '/v1/sessions/{id}/claim',
    tag,
    summary: 'Claim jobs',
    about: 'Answers as soon as there is one, or with none when the time is over.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({
      most: z.number().int().min(1).max(mostAtOnce).optional().openapi({ description: 'Default: 1.' }),
      waitMs: z.number().int().min(0).max(longestWaitMs).optional().openapi({ description: 'Default: 0.' }),
    }),
    answers: { 200: { about: 'What it has to run.', schema: z.object({ attempts: z.array(attempt) }) } },
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
      'With everything that the worker holds. What it has lost is answered, and must be aborted; what it does not know of is given back.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ held: fences }),
    bodySize: 'input',
    answers: {
      200: { about: 'The lease stands.', schema: z.object({ leaseUntil: time, lost: z.array(lostAttempt) }) },
    },
    problems: lost,
    handle: async ({ hf, caller, body, ...given }) =>
      json(
        200,
        await hf.remote.beat(
          await readSessionId({ caller, ...given }),
          { held: body.held as Fence[] },
          scopeOf(caller),
        ),
      ),
  }),
  operation({
    id: 'reportProgress',
    method: 'post',
    path: '/v1/sessions/{id}/progress',
    tag,
    summary: 'Report progress',
    about: 'How far attempts are, and lines for their timelines.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ reports: z.array(report).max(mostAtOnce) }),
    bodySize: 'large',
    answers: { 200: { about: 'What became of each.', schema: written } },
    problems: ['session_not_found', 'option_invalid'],
    handle: async ({ hf, caller, body, ...given }) =>
      json(
        200,
        beside(
          body.reports,
          await hf.remote.progress(await readSessionId({ caller, ...given }), body.reports, scopeOf(caller)),
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
      'How they ended; what follows from that, the server decides by the rules of the kind. May be sent again if the answer was lost.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ outcomes: z.array(outcome).max(mostAtOnce) }),
    bodySize: 'large',
    answers: { 200: { about: 'What became of each.', schema: settled } },
    problems: ['session_not_found', 'option_invalid'],
    handle: async ({ hf, caller, body, ...given }) =>
      json(
        200,
        beside(
          body.outcomes,
          await hf.remote.settle(await readSessionId({ caller, ...given }), body.outcomes, scopeOf(caller)),
        ),
      ),
  }),
  operation({
    id: 'releaseAttempts',
    method: 'post',
    path: '/v1/sessions/{id}/release',
    tag,
    summary: 'Give attempts back',
    about: 'Unharmed: it costs no retry.',
    scope: 'work',
    params: sessionId,
    body: z.strictObject({ attempts: fences }),
    bodySize: 'input',
    answers: { 200: { about: 'What became of each.', schema: settled } },
    problems: ['session_not_found'],
    handle: async ({ hf, caller, body, ...given }) =>
      json(
        200,
        beside(
          body.attempts,
          await hf.remote.release(await readSessionId({ caller, ...given }), body.attempts as Fence[], scopeOf(caller)),
        ),
      ),
  }),
  operation({
    id: 'closeSession',
    method: 'delete',
    path: '/v1/sessions/{id}',
    tag,
    summary: 'Close a session',
    about: 'Gives back whatever it still holds.',
    scope: 'work',
    params: sessionId,
    answers: { 204: { about: 'It is closed.' } },
    problems: ['session_not_found'],
    async handle({ hf, caller, ...given }) {
      await hf.remote.close(await readSessionId({ caller, ...given }), scopeOf(caller))
      return nothing()
    },
  }),
]

async function claim(
  given: Given<{ id: string }, unknown, unknown, { most?: number | undefined; waitMs?: number | undefined }>,
): Promise<Reply> {
  const { hf, door, caller, body } = given
  const id = await readSessionId(given)
  if (!body.waitMs) return json(200, { attempts: await hf.remote.claim(id, body, scopeOf(caller)) })
  const done = door.limits.wait(caller)
  const counted = door.meter.waits()
  // a key that is revoked while it waits must not be handed a job any more
  const unwelcome = new AbortController()
  const asking = setInterval(async () => {
    if (!(await door.keyring.isStillGood(given.request))) unwelcome.abort()
  }, keyFreshMs)
  try {
    const signal = AbortSignal.any([given.signal, unwelcome.signal])
    const attempts = await hf.remote.claim(id, { ...body, signal }, scopeOf(caller))
    if (unwelcome.signal.aborted && attempts.length === 0) throw keyRefused()
    return json(200, { attempts })
  } finally {
    clearInterval(asking)
    counted()
    done()
  }
}
