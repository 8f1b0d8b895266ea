import { randomBytes } from 'node:crypto'
import type { TimelineEvent } from '../../engine/job.ts'
import type { LogEvent } from '../../events/event.ts'
import type { Caller } from '../caller.ts'
import type { Seal } from '../seal.ts'
import { z } from '../zod.ts'
import { anything, time } from './words.ts'

const common = {
  id: z.string().openapi({ description: 'Its place in the log: pass it on as `after`, or as Last-Event-ID.' }),
  at: time,
  type: z.string().openapi({ example: 'job.succeeded' }),
  attempt: z.number().int(),
  stage: z.number().int(),
  data: anything,
}

/** One event of a job's timeline. */
export const timelineEvent = z.object(common).openapi('TimelineEvent')

/** One event of the log. */
export const logEvent = z
  .object({
    ...common,
    job: z.string().nullable(),
    kind: z.string().nullable(),
    tenant: z.string(),
    state: z.string().nullable().openapi({ description: 'What the job became by it.' }),
    item: z
      .object({ parent: z.string().nullable(), key: z.string(), position: z.number().int() })
      .nullable()
      .openapi({ description: 'If it is about an item of a fan-out: whose, its key, and its place among the items.' }),
  })
  .openapi('Event')

/** The place of an event, as the caller may know it: numbers of the log would tell a tenant how much others do, and so would their lengths. */
export function placeOf(seal: Seal, caller: Caller, seq: number): Promise<string> | string {
  return caller.tenant === null ? String(seq) : seal.seal(`event ${digits(seq)}`)
}

/** A place between events, where somebody goes on: another word each time, or it would tell a tenant whether others did something meanwhile. */
export function placeBetween(seal: Seal, caller: Caller, seq: number): Promise<string> | string {
  if (caller.tenant === null) return String(seq)
  return seal.seal(`event ${digits(seq)} ${randomBytes(6).toString('hex')}`)
}

/** Numbers of one length: what is sealed is as long as before. */
export function digits(seq: number): string {
  return String(seq).padStart(16, '0')
}

/** One event of a timeline, as it is shown. */
export async function showEvent(seal: Seal, caller: Caller, event: TimelineEvent): Promise<object> {
  const { seq, at, type, attempt, stage, data } = event
  return { id: await placeOf(seal, caller, seq), at, type, attempt, stage, data: withoutStack(data) }
}

/** One event of the log, as it is shown. */
export async function showLogEvent(seal: Seal, caller: Caller, event: LogEvent): Promise<object> {
  const { seq, at, type, attempt, stage, data, jobId, kind, tenant, state, item } = event
  return {
    id: await placeOf(seal, caller, seq),
    at,
    type,
    job: jobId,
    kind,
    tenant,
    state,
    item,
    attempt,
    stage,
    data: withoutStack(data),
  }
}

/** What went wrong may come with the stack of a handler, which is nobody's business out here. */
function withoutStack(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return data
  const { stack: _, ...rest } = data as Record<string, unknown>
  return 'error' in rest ? { ...rest, error: withoutStack(rest.error) } : rest
}
