import type { Bulk } from '../../bulk/bulk.ts'
import type { FailureOptions } from '../../bulk/failures.ts'
import type { BulkFilter } from '../../bulk/filter.ts'
import type { NewBulkOperation } from '../../bulk/request.ts'
import type { Caller } from '../caller.ts'
import { positionIn } from '../cursor.ts'
import { json, operation } from '../operation.ts'
import { bulk, bulkFilter, bulkOperation, bulkPreview, bulkState, failures, skippedJob } from '../schemas/bulk.ts'
import { showSummary } from '../schemas/job.ts'
import { byId, cursor, flag, id, inputTime, limit, name, next, tenant, text } from '../schemas/primitives.ts'
import { actFor, scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

/** An operation as a caller may see it: where processes run is not for tenants, nor what the database said. */
function show({ tenant: isTenant }: Caller, { holder, error, ...rest }: Bulk): object {
  return isTenant === null ? { ...rest, holder, error } : { ...rest, holder: null, error: null }
}

/** The filter of a request, limited to the caller's tenant. */
function filterFor(caller: Caller, asked: z.output<typeof bulkFilter>): BulkFilter {
  return { ...(asked as BulkFilter), ...scopeFor(caller, asked.tenant) }
}

/** Operations on many jobs at once, and failed jobs by error. */
export const bulkOperations = [
  operation({
    id: 'previewBulk',
    method: 'post',
    path: '/v1/bulk/preview',
    tag: 'bulk',
    summary: 'Preview a bulk operation',
    about:
      'Counts the jobs that the operation would change, and returns some of them. Changes nothing. If `next` is not null, pass it as `cursor` to count further.',
    scope: 'read',
    isScan: true,
    body: z.strictObject({ operation: bulkOperation, filter: bulkFilter, cursor: cursor.optional() }),
    answers: { 200: { about: 'How many jobs match, and some of them.', schema: bulkPreview } },
    problems: ['option_invalid'],
    async handle({ hf, gateway, caller, body }) {
      const before = await positionIn(gateway.cursorTokens, 'bulk-jobs', body.cursor)
      const found = await hf.bulk.preview({
        operation: body.operation,
        filter: filterFor(caller, body.filter),
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor = found.next === null ? null : await gateway.cursorTokens.seal(`bulk-jobs ${found.next}`)
      return json(200, { ...found, sample: found.sample.map(showSummary), next: nextCursor })
    },
  }),
  operation({
    id: 'startBulk',
    method: 'post',
    path: '/v1/bulk',
    tag: 'bulk',
    summary: 'Start a bulk operation',
    about:
      'Changes the jobs that match at this moment, in the background. Jobs that are submitted or end later are left alone. Repeating the request with the same `id` starts nothing new.',
    scope: 'operate',
    isScan: true,
    body: z.strictObject({
      id: id.optional(),
      operation: bulkOperation,
      filter: bulkFilter,
      from: z.enum(['failed', 'start']).optional().openapi({ description: 'For `redo`.' }),
      priority: z.number().int().min(1).max(4).optional().openapi({ description: 'For `priority`: 1 (first) to 4.' }),
      runAt: inputTime.optional().openapi({ description: 'For `reschedule`.' }),
      delayMs: z.number().min(0).max(3_153_600_000_000).optional().openapi({ description: 'For `reschedule`.' }),
      rate: z.number().int().min(1).max(100_000).optional().openapi({ description: 'Jobs per second, at most.' }),
      reason: text(1_000).optional(),
    }),
    answers: { 202: { about: 'The operation is under way.', schema: bulk } },
    problems: ['option_invalid', 'bulk_matches_nothing', 'bulk_conflict', 'bulk_limit'],
    async handle({ hf, caller, body }) {
      const { by } = actFor(caller)
      const started = await hf.bulk.start({
        ...(body as NewBulkOperation),
        filter: filterFor(caller, body.filter),
        ...(by === undefined ? {} : { by }),
      })
      return json(202, show(caller, started))
    },
  }),
  operation({
    id: 'listBulk',
    method: 'get',
    path: '/v1/bulk',
    tag: 'bulk',
    summary: 'List bulk operations',
    about: 'Newest first.',
    scope: 'read',
    query: z.strictObject({
      tenant: tenant.optional(),
      state: bulkState.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: { 200: { about: 'A page of operations.', schema: z.object({ operations: z.array(bulk), next }) } },
    async handle({ hf, gateway, caller, query, request }) {
      const { cursor: from, tenant: asked, limit: most = 50, state: only } = query
      const before = await positionIn(gateway.cursorTokens, 'bulk', from)
      const found = await hf.bulk.list({
        ...scopeFor(caller, asked),
        limit: most,
        ...(only === undefined ? {} : { state: only }),
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor = found.length < most ? null : await gateway.cursorTokens.seal(`bulk ${found.at(-1)?.id}`)
      const operations = found.map((one) => show(caller, one))
      return json(200, { operations, next: nextCursor }, linkTo(request, nextCursor))
    },
  }),
  operation({
    id: 'getBulk',
    method: 'get',
    path: '/v1/bulk/{id}',
    tag: 'bulk',
    summary: 'Get a bulk operation',
    scope: 'read',
    params: byId,
    answers: { 200: { about: 'The operation and its progress.', schema: bulk } },
    problems: ['bulk_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(caller, await hf.bulk.get(params.id, scopeFor(caller)))),
  }),
  operation({
    id: 'listBulkSkipped',
    method: 'get',
    path: '/v1/bulk/{id}/skipped',
    tag: 'bulk',
    summary: 'List skipped jobs',
    about: 'Jobs that matched and were left as they were, with the reason. Lists the first 10,000, newest first.',
    scope: 'read',
    params: byId,
    query: z.strictObject({ limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of skipped jobs.', schema: z.object({ skipped: z.array(skippedJob), next }) } },
    problems: ['bulk_not_found'],
    async handle({ hf, gateway, caller, params, query, request }) {
      const { cursor: from, limit: most = 100 } = query
      const before = await positionIn(gateway.cursorTokens, 'bulk-skipped', from)
      const found = await hf.bulk.skipped(params.id, {
        ...scopeFor(caller),
        limit: most,
        ...(before === undefined ? {} : { before }),
      })
      const nextCursor =
        found.length < most ? null : await gateway.cursorTokens.seal(`bulk-skipped ${found.at(-1)?.job}`)
      return json(200, { skipped: found, next: nextCursor }, linkTo(request, nextCursor))
    },
  }),
  operation({
    id: 'stopBulk',
    method: 'post',
    path: '/v1/bulk/{id}/stop',
    tag: 'bulk',
    summary: 'Stop a bulk operation',
    about: 'What it has changed stays changed.',
    scope: 'operate',
    params: byId,
    body: z.strictObject({ reason: text(1_000).optional() }),
    answers: { 200: { about: 'The operation is stopped.', schema: bulk } },
    problems: ['bulk_not_found', 'bulk_ended'],
    async handle({ hf, caller, params, body }) {
      const reason = body.reason === undefined ? {} : { reason: body.reason }
      return json(200, show(caller, await hf.bulk.stop(params.id, { ...actFor(caller), ...reason })))
    },
  }),
  operation({
    id: 'listFailures',
    method: 'get',
    path: '/v1/failures',
    tag: 'bulk',
    summary: 'List failures by kind and error',
    about:
      'The most frequent first, each with its latest example. Scans the newest 100,000 jobs, for up to two seconds.',
    scope: 'read',
    isScan: true,
    query: z.strictObject({
      tenant: tenant.optional(),
      kind: name.optional(),
      since: inputTime.optional().openapi({ description: 'Only jobs that failed at or after this time.' }),
      items: flag.optional().openapi({ description: 'Include fan-out items.' }),
      limit: limit.optional(),
    }),
    answers: { 200: { about: 'Failed jobs by kind and error.', schema: failures } },
    async handle({ hf, caller, query }) {
      const { tenant: asked, ...rest } = query
      return json(200, await hf.failures({ ...(rest as FailureOptions), ...scopeFor(caller, asked) }))
    },
  }),
]
