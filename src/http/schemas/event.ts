import { randomBytes } from 'node:crypto'
import type { LogEvent } from '../../events/event.ts'
import type { TimelineEvent } from '../../reads/job.ts'
import type { Caller } from '../caller.ts'
import type { CursorTokens } from '../cursor-token.ts'
import { z } from '../zod.ts'
import { anything, time } from './primitives.ts'

const common = {
  id: z.string().openapi({ description: 'Position in the log. Pass it as `after` or as Last-Event-ID.' }),
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
    state: z.string().nullable().openapi({ description: 'State of the job after the event.' }),
    item: z
      .object({ parent: z.string().nullable(), key: z.string(), position: z.number().int() })
      .nullable()
      .openapi({ description: 'For an event of a fan-out item: its parent, key and position.' }),
  })
  .openapi('Event')

/** The position of an event, as shown to the caller: sequence numbers would tell a tenant how much others do, and so would their lengths. */
export function positionOf(cursorTokens: CursorTokens, caller: Caller, seq: number): Promise<string> | string {
  return caller.tenant === null ? String(seq) : cursorTokens.seal(`event ${digits(seq)}`)
}

/** A position between events, to continue from. It differs each time, or it would tell a tenant whether others did something in the meantime. */
export function positionBetween(cursorTokens: CursorTokens, caller: Caller, seq: number): Promise<string> | string {
  if (caller.tenant === null) return String(seq)
  return cursorTokens.seal(`event ${digits(seq)} ${randomBytes(6).toString('hex')}`)
}

/** Pads a number, so that all sealed positions have the same length. */
export function digits(seq: number): string {
  return String(seq).padStart(16, '0')
}

/** One event of a timeline, as shown to the caller. */
export async function showEvent(cursorTokens: CursorTokens, caller: Caller, event: TimelineEvent): Promise<object> {
  const { seq, at, type, attempt, stage, data } = event
  return { id: await positionOf(cursorTokens, caller, seq), at, type, attempt, stage, data: withoutStack(data) }
}

/** One event of the log, as shown to the caller. */
export async function showLogEvent(cursorTokens: CursorTokens, caller: Caller, event: LogEvent): Promise<object> {
  const { seq, at, type, attempt, stage, data, jobId, kind, tenant, state, item } = event
  return {
    id: await positionOf(cursorTokens, caller, seq),
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

/** Removes the stack of a handler's error, which callers must not see. */
function withoutStack(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return data
  const { stack: _, ...rest } = data as Record<string, unknown>
  return 'error' in rest ? { ...rest, error: withoutStack(rest.error) } : rest
}
