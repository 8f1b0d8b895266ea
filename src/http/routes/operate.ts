import type { PauseOptions } from '../../reads/queues.ts'
import { byCaller } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { anything, flag, limit, name, tenant, text, time, whole } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'

const queue = z
  .object({
    name: z.string(),
    isPaused: z.boolean(),
    pausedAt: time.nullable(),
    pausedBy: z.string().nullable(),
    pauseReason: z.string().nullable(),
    queued: z.number().int().openapi({ description: 'Jobs that are ready to run.' }),
    scheduled: z.number().int(),
    running: z.number().int(),
    waiting: z.number().int(),
    oldestDueMs: z.number().nullable(),
    workers: z.number().int(),
    isCapped: z
      .boolean()
      .openapi({ description: 'Whether there were too many jobs to count. The numbers are then lower bounds.' }),
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
      .openapi({ description: 'Signal or exit code of the process, if a supervisor observed it.' }),
    kinds: z.array(z.string()),
    queues: z.array(z.string()),
    concurrency: z.number().int(),
    running: z.number().int(),
    isClaiming: z.boolean().openapi({ description: 'Whether it claims jobs. False while it drains.' }),
    busy: z.number().int().openapi({ description: 'Concurrency slots in use at its last heartbeat.' }),
    unresponsive: z
      .number()
      .int()
      .openapi({ description: 'Handlers that ignored their abort signal and are still running.' }),
    blockedMs: z
      .number()
      .int()
      .openapi({ description: 'How long a handler has blocked the event loop; 0 if none does.' }),
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
    boundMs: z.number().openapi({ description: 'The longest time until a lost job is recovered.' }),
    ladder: z.array(z.object({ rung: z.string(), when: z.string(), boundMs: z.number(), made: z.string() })),
    orphans: z.number().int().openapi({
      description: 'Attempts that lost their workers and are not recovered yet; counts up to 1,000.',
    }),
    stranded: z
      .array(z.object({ queue: z.string(), kind: z.string(), waitingMs: z.number() }))
      .openapi({ description: 'Kinds with due jobs but no running worker in their queue.' }),
    oldestSnapshot: z
      .object({
        what: z.enum(['transaction', 'prepared', 'replica', 'slot']),
        pid: z.number().int().nullable(),
        name: z.string().nullable(),
        application: z.string().nullable(),
        since: time.nullable(),
      })
      .nullable()
      .openapi({
        description: 'What has kept the server from vacuuming dead rows for at least a minute.',
      }),
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
const whoAndWhy = z.strictObject({ by: text(200).optional(), reason: text(1_000).optional() })
const paused = z.object({ name: z.string(), isPaused: z.boolean() })

/** Operations on queues, sessions and recovery. */
export const operateOperations = [
  operation({
    id: 'listQueues',
    method: 'get',
    path: '/v1/queues',
    tag: 'operate',
    summary: 'List queues',
    about: 'A tenant key counts only jobs of its tenant.',
    scope: 'read',
    isScan: true,
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
    about: 'Workers stop claiming its jobs; running jobs continue. `why` shows who paused the queue and the reason.',
    scope: 'operate',
    isForAll: true,
    params: byName,
    body: whoAndWhy,
    answers: { 200: { about: 'The queue is paused.', schema: paused } },
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
    body: whoAndWhy,
    answers: { 200: { about: 'Workers claim its jobs again.', schema: paused } },
    async handle({ hf, caller, params, body }) {
      await hf.resumeQueue(params.name, { ...(body as PauseOptions), ...byCaller(caller, body.by) })
      return json(200, { name: params.name, isPaused: false })
    },
  }),
  operation({
    id: 'listSessions',
    method: 'get',
    path: '/v1/sessions',
    tag: 'operate',
    summary: 'List sessions',
    about: 'Running worker processes or, with `ended`, those that have ended. Newest first.',
    scope: 'read',
    isScan: true,
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
    about: 'Shows the leader, the recovery bound, recently revived jobs, and late writes that were refused.',
    scope: 'read',
    isScan: true,
    isForAll: true,
    answers: { 200: { about: 'The state of recovery.', schema: recovery } },
    handle: async ({ hf }) => json(200, await hf.recovery()),
  }),
]
