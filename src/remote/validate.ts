import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type Fence, parseJobId } from '../job/id.ts'
import type { JobError } from '../settle/outcome.ts'
import { clean } from '../worker/conclude.ts'

/** How an attempt ended, as reported by its remote worker. The server decides what follows. */
export type RemoteOutcome = { id: string; attempt: number } & (
  | {
      outcome: 'succeeded'
      /** What the stage returned. */
      output?: unknown
    }
  | { outcome: 'failed'; error: RemoteError }
  | {
      outcome: 'released'
      /** How long to hold the job, and all that wait at the same gate, because another system asked to slow down. */
      retryAfterMs?: number | undefined
    }
  | {
      outcome: 'snoozed'
      /** For how long, in milliseconds. Costs no retry. */
      delayMs: number
    }
)

/** What went wrong in a remote worker. */
export interface RemoteError {
  message: string
  /** Default: `handler_failed`, or `permanent`. */
  code?: RemoteErrorCode | undefined
  /** Whether retrying is pointless. */
  isPermanent?: boolean | undefined
  /** Where it happened. */
  stack?: string | undefined
}

/** The error codes that a remote worker may use. Anything more specific belongs in the message. */
export const remoteErrorCodes = ['handler_failed', 'permanent', 'timeout', 'input_invalid'] as const
/** An error code that a remote worker may use. */
export type RemoteErrorCode = (typeof remoteErrorCodes)[number]

/** What a remote worker reports about a running attempt: progress, lines for the timeline, or both. */
export interface RemoteReport {
  id: string
  attempt: number
  /** How much is done. */
  done?: number | undefined
  /** How much there is to do. */
  total?: number | undefined
  /** What it is doing. */
  note?: string | undefined
  /** Lines for the timeline of the job. */
  log?: readonly { message: string; data?: Record<string, unknown> | undefined }[] | undefined
}

/** The most attempts in one request. */
export const mostAtOnce = 500
/** The longest wait for jobs in one request. */
export const longestWaitMs = 60_000
/** The most lines in one report. */
export const mostLines = 100

const largestAttempt = 2_147_483_647

/** Validates a whole number in a request. */
export function wholeOf(name: string, value: unknown, { min, max }: { min: number; max: number }): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  return refuse(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(value) ?? 'undefined'}`)
}

/** Validates a short text in a request. */
export function textOf(name: string, value: unknown, most: number): string {
  if (typeof value !== 'string') return refuse(`${name} must be a string`)
  if (value.length > most) return refuse(`${name} has ${value.length} characters; at most ${most} are allowed`)
  return clean(value)
}

/** Validates the list in a request, each entry of which is about an attempt. */
export function entriesOf<T extends { id: string; attempt: number }>(
  name: string,
  list: readonly T[],
): { fence: Fence; entry: T }[] {
  if (!Array.isArray(list) || list.length > mostAtOnce) return refuse(`${name} must be a list of at most ${mostAtOnce}`)
  return list.map((entry, index) => ({ fence: fenceAt(`${name}[${index}]`, entry), entry }))
}

function fenceAt(where: string, given: { id: string; attempt: number }): Fence {
  const id = typeof given?.id === 'string' ? parseJobId(given.id) : null
  if (!id) return refuse(`${where}.id must be the id of a job`)
  return { id, attempt: wholeOf(`${where}.attempt`, given.attempt, { min: 1, max: largestAttempt }) }
}

/** An error of a remote worker, as it is stored. */
export function jobErrorOf(error: RemoteError): JobError {
  if (typeof error?.message !== 'string') return refuse('an outcome "failed" needs error.message of type string')
  const { code = error.isPermanent === true ? 'permanent' : 'handler_failed', stack } = error
  if (!remoteErrorCodes.includes(code))
    return refuse(`error.code must be one of ${remoteErrorCodes.join(', ')}; put other codes into the message`)
  const kept = typeof stack === 'string' ? clean(stack.slice(0, 5_000)) : undefined
  return {
    code: error.isPermanent === true ? 'permanent' : code,
    message: messageOf(error.message),
    ...(kept && { stack: kept }),
  }
}

/** Rejects a request of a remote worker. */
export function refuse(problem: string): never {
  throw new HoldfastError('option_invalid', `The request of the remote worker is invalid: ${problem}.`)
}
