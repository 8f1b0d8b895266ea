import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type Fence, parseJobId } from '../job/id.ts'
import type { JobError } from '../settle/outcome.ts'
import { clean } from './conclude.ts'

/** How an attempt of a remote worker ended, as the worker tells it. What follows from that, the server decides. */
export type RemoteOutcome = { id: string; attempt: number } & (
  | { outcome: 'succeeded'; output?: unknown }
  | { outcome: 'failed'; error: RemoteError }
  | { outcome: 'released' }
)

/** What went wrong in a remote worker. */
export interface RemoteError {
  message: string
  /** Default: `handler_failed`, or `permanent`. */
  code?: RemoteErrorCode | undefined
  /** Whether no retry can help. */
  isPermanent?: boolean | undefined
  stack?: string | undefined
}

/** The codes that a remote worker may give an error; whatever else it knows belongs in the message. */
export const remoteErrorCodes = ['handler_failed', 'permanent', 'timeout', 'input_invalid'] as const
/** One of them. */
export type RemoteErrorCode = (typeof remoteErrorCodes)[number]

/** What a remote worker says about an attempt that goes on: how far it is, lines for the timeline, or both. */
export interface RemoteReport {
  id: string
  attempt: number
  done?: number | undefined
  total?: number | undefined
  note?: string | undefined
  log?: readonly { message: string; data?: Record<string, unknown> | undefined }[] | undefined
}

/** The most attempts in one request. */
export const mostAtOnce = 500
/** The longest wait for jobs in one request. */
export const longestWaitMs = 60_000
/** The most lines in one report. */
export const mostLines = 100

const largestAttempt = 2_147_483_647

/** A whole number from outside. */
export function wholeOf(name: string, value: unknown, { min, max }: { min: number; max: number }): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  return refuse(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(value) ?? 'undefined'}`)
}

/** A short text from outside. */
export function wordsOf(name: string, value: unknown, most: number): string {
  if (typeof value !== 'string') return refuse(`${name} must be a text`)
  if (value.length > most) return refuse(`${name} has ${value.length} characters; at most ${most} are kept`)
  return clean(value)
}

/** The entries of a request, if it is a list of few enough, each about an attempt. */
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

/** What went wrong, as it is stored. */
export function jobErrorOf(error: RemoteError): JobError {
  if (typeof error?.message !== 'string') return refuse('an outcome "failed" needs error.message, a text')
  const { code = error.isPermanent === true ? 'permanent' : 'handler_failed', stack } = error
  if (!remoteErrorCodes.includes(code))
    return refuse(`error.code must be one of ${remoteErrorCodes.join(', ')}; put others into the message`)
  const kept = typeof stack === 'string' ? clean(stack.slice(0, 5_000)) : undefined
  return {
    code: error.isPermanent === true ? 'permanent' : code,
    message: messageOf(error.message),
    ...(kept && { stack: kept }),
  }
}

/** Says what is wrong with a request of a remote worker. */
export function refuse(problem: string): never {
  throw new HoldfastError('option_invalid', `This request of a remote worker cannot be used: ${problem}.`)
}
