import type { PauseOptions } from '../../engine/queues.ts'
import { byCaller, scopeFor } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { anything, flag, limit, name, tenant, text, time, whole } from '../schemas/words.ts'
import { z } from '../zod.ts'

const queue = z
  .object({
    name: z.string(),
    isPaused: z.boolean(),
    pausedAt: time.nullable(),
    pausedBy: z.string().nullable(),
    pauseReason: z.string().nullable(),
    queued: z.number().int().openapi({ description: 'Jobs that could run this moment.' }),
    scheduled: z.number().int(),
    running: z.number().int(),
    waiting: z.number().int(),
    oldestDueMs: z.number().nullable(),
    workers: z.number().int(),
    isCapped: z
      .boolean()
      .openapi({ description: 'Whether there were too many to count: the numbers are then the least that there are.' }),
  })
  .openapi('Queue')

const session = z
  .object({
    id: z.number().int(),
    host: z.string(),
    pid: z.number().int(),
    version: z.string(),
    supervisor: z.string().nullable(),
    startedAt: time,
    heartbeatAt: time,
    leaseUntil: time,
    endedAt: time.nullable(),
    endedBy: z.string().nullable(),
    exit: z
      .string()
      .nullable()
      .openapi({ description: 'The signal or code with which its process ended, if a supervisor saw it.' }),
    kinds: z.array(z.string()),
    queues: z.array(z.string()),
    concurrency: z.number().int(),
    running: z.number().int(),
    isClaiming: z.boolean().openapi({ description: 'Whether it claims jobs; not so while it drains.' }),
    busy: z.number().int().openapi({ description: 'Handlers that took a place at its last heartbeat.' }),
    unresponsive: z.number().int().openapi({ description: 'Handlers that ignored their signal and still run.' }),
    blockedMs: z
      .number()
      .int()
      .openapi({ description: 'How long a handler had blocked its event loop; 0 if none does.' }),
    isLocked: z.boolean(),
    isLive: z.boolean(),
  })
  .openapi('Session')

const recovery = z
  .object({
    leader: z
      .object({
        holder: z.string(),
        term: z.number().int(),
        acquiredAt: time,
        renewedAt: time,
        leaseUntil: time,
        sweptAt: time.nullable(),
        sweepMs: z.number().nullable(),
        isLive: z.boolean(),
      })
      .nullable(),
    boundMs: z.number().openapi({ description: 'The latest moment at which any lost job moves again.' }),
    ladder: z.array(z.object({ rung: z.string(), when: z.string(), boundMs: z.number(), made: z.string() })),
    orphans: z.number().int().openapi({
      description: 'Attempts that have lost their workers and were not moved on yet; at most 1,000 are counted.',
    }),
    stranded: z
      .array(z.object({ queue: z.string(), kind: z.string(), waitingMs: z.number() }))
      .openapi({ description: 'Kinds with due jobs that no living worker serves in their queue.' }),
    revivals: z.array(
      z.object({
        at: time,
        job: z.string(),
        kind: z.string(),
        tenant: z.string(),
        attempt: z.number().int(),
        type: z.string(),
        data: anything,
      }),
    ),
    refusals: z.array(
      z.object({ at: time, job: z.string(), attempt: z.number().int(), session: z.number().int(), write: z.string() }),
    ),
  })
  .openapi('Recovery')

const byName = z.strictObject({ name })
const paused = z.object({ name: z.string(), isPaused: z.boolean() })

/** Queues, sessions, recovery. */
export const operateOperations = [
  operation({
    id: 'listQueues',
    method: 'get',
    path: '/v1/queues',
    tag: 'operate',
    summary: 'List queues',
    about: 'With a key of a tenant, only its own jobs are counted.',
    scope: 'read',
    query: z.strictObject({ tenant: tenant.optional() }),
    answers: { 200: { about: 'All queues.', schema: z.object({ queues: z.array(queue) }) } },
    handle: async ({ hf, caller, query }) => json(200, { queues: await hf.queues(scopeFor(caller, query.tenant)) }),
  }),
  operation({
    id: 'pauseQueue',
    method: 'post',
    path: '/v1/queues/{name}/pause',
    tag: 'operate',
    summary: 'Pause a queue',
    about: 'Its jobs are no longer claimed; what runs continues. `why` shows who paused it and for what reason.',
    scope: 'operate',
    isForAll: true,
    params: byName,
    body: z.strictObject({ by: text(200).optional(), reason: text(1_000).optional() }),
    answers: { 200: { about: 'It is paused.', schema: paused } },
    async handle({ hf, caller, params, body }) {
      await hf.pauseQueue(params.name, { ...(body as PauseOptions), ...byCaller(caller, body.by) })
      return json(200, { name: params.name, isPaused: true })
    },
  }),
  operation({
    id: 'resumeQueue',
    method: 'post',
    path: '/v1/queues/{name}/resume',
    tag: 'operate',
    summary: 'Resume a queue',
    scope: 'operate',
    isForAll: true,
    params: byName,
    answers: { 200: { about: 'Its jobs are claimed again.', schema: paused } },
    async handle({ hf, caller, params }) {
      await hf.resumeQueue(params.name, byCaller(caller))
      return json(200, { name: params.name, isPaused: false })
    },
  }),
  operation({
    id: 'listSessions',
    method: 'get',
    path: '/v1/sessions',
    tag: 'operate',
    summary: 'List sessions',
    about: 'The worker processes that live, or with `ended` those that have ended; the latest first.',
    scope: 'read',
    isForAll: true,
    query: z.strictObject({
      ended: flag.optional(),
      before: whole(1, 999_999_999_999).optional(),
      limit: limit.optional(),
    }),
    answers: { 200: { about: 'A page of sessions.', schema: z.object({ sessions: z.array(session) }) } },
    handle: async ({ hf, query }) => json(200, { sessions: await hf.sessions(query as object) }),
  }),
  operation({
    id: 'getRecovery',
    method: 'get',
    path: '/v1/recovery',
    tag: 'operate',
    summary: 'Get the state of recovery',
    about:
      'Who leads, within what bound lost jobs move again, what was revived lately, and which late writes were refused.',
    scope: 'read',
    isForAll: true,
    answers: { 200: { about: 'Recovery.', schema: recovery } },
    handle: async ({ hf }) => json(200, await hf.recovery()),
  }),
]
