import {
  allBulkOperations,
  type BulkOperation,
  type BulkState,
  bulkStates,
  type SkipReason,
  skipReasons,
} from '../../bulk/operations.ts'
import { z } from '../zod.ts'
import { jobSummary } from './job.ts'
import { id, inputTime, name, next, state, tenant, text, time } from './primitives.ts'

/** What a bulk operation does. */
export const bulkOperation = z.enum(allBulkOperations as [BulkOperation, ...BulkOperation[]])
/** The state of a bulk operation. */
export const bulkState = z.enum(bulkStates as [BulkState, ...BulkState[]])
const search = text(200).min(1)

/** Which jobs. */
export const bulkFilter = z
  .strictObject({
    kind: name.optional(),
    queue: name.optional(),
    tenant: tenant.optional(),
    state: z.union([state, z.array(state).min(1).max(7)]).optional(),
    error: search.optional().openapi({ description: 'Error code.' }),
    errorText: search.optional().openapi({ description: 'Text in the error message.' }),
    text: search.optional().openapi({ description: 'Text in the input, as JSON.' }),
    since: inputTime.optional().openapi({ description: 'Submitted at or after this time.' }),
    until: inputTime.optional().openapi({ description: 'Submitted before this time.' }),
    endedSince: inputTime.optional(),
    endedUntil: inputTime.optional(),
    items: z.boolean().optional().openapi({ description: 'Change fan-out items one by one.' }),
    all: z.boolean().optional().openapi({ description: 'Required if there is no other condition.' }),
  })
  .openapi('BulkFilter')

/** How many jobs match. */
export const bulkPreview = z
  .object({
    count: z.number().int(),
    isAtLeast: z.boolean().openapi({ description: 'Whether there may be more than `count`.' }),
    sample: z.array(jobSummary).openapi({ description: 'The newest of them, up to 10.' }),
    next,
  })
  .openapi('BulkPreview')

/** A bulk operation and its progress. */
export const bulk = z
  .object({
    id,
    operation: bulkOperation,
    tenant: z.string().nullable(),
    filter: z.object({
      kind: z.string().optional(),
      queue: z.string().optional(),
      tenant: z.string().optional(),
      states: z.array(state),
      error: z.string().optional(),
      errorText: z.string().optional(),
      text: z.string().optional(),
      since: time.optional(),
      until: time.optional(),
      endedSince: time.optional(),
      endedUntil: time.optional(),
      items: z.boolean(),
    }),
    change: z.object({
      from: z.enum(['failed', 'start']).optional(),
      priority: z.number().int().optional(),
      runAt: time.optional(),
    }),
    state: bulkState,
    expected: z.number().int().openapi({ description: 'Jobs that matched when it was asked for, up to 100,000.' }),
    isAtLeast: z.boolean().openapi({ description: 'Whether there may have been more than `expected`.' }),
    done: z.number().int(),
    skipped: z.number().int(),
    sample: z.array(z.string()),
    askedAt: time,
    askedBy: z.string().nullable(),
    reason: z.string().nullable(),
    rate: z.number().int().nullable(),
    isHeld: z.boolean().openapi({ description: 'Whether a process is carrying it on at this moment.' }),
    holder: z.string().nullable().openapi({ description: 'That process; null for a tenant key.' }),
    movedAt: time,
    error: z.string().nullable().openapi({ description: 'Why its last page failed; it is tried again.' }),
    endedAt: time.nullable(),
    stoppedBy: z.string().nullable(),
    stopReason: z.string().nullable(),
  })
  .openapi('BulkOperation')

/** A job that was left as it was. */
export const skippedJob = z.object({
  job: z.string(),
  reason: z.enum(Object.keys(skipReasons) as [SkipReason, ...SkipReason[]]),
  error: z.string().nullable(),
  at: time,
})

/** Failed jobs by kind and error. */
export const failures = z
  .object({
    groups: z.array(
      z.object({
        kind: z.string(),
        code: z.string(),
        message: z.string().openapi({ description: 'The start of the error message, with `#` for numbers and ids.' }),
        count: z.number().int(),
        firstAt: time,
        latestAt: time,
        latest: z.object({ id: z.string(), message: z.string() }),
      }),
    ),
    count: z.number().int(),
    isAtLeast: z.boolean(),
  })
  .openapi('Failures')
