import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf, PermanentError } from '../errors/errors.ts'
import { backoffMs } from '../job/backoff.ts'
import { encodeStorable } from '../job/storable.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'

/** The outcome of an attempt whose handler returned this. `hasFlaws`: some of its items failed within the threshold. */
export function success(config: Config, attempt: Attempt, output: unknown, hasFlaws = false): Outcome {
  const stageName = attempt.stage.name
  const isLast = attempt.row.is_part || attempt.row.stage + 1 === attempt.job.stages.length
  const move = isLast ? 'finish' : 'advance'
  if (output === undefined || output === null) return { move, stageName, output: null, hasFlaws }
  const encoded = encodeStorable(output, 'output')
  if ('problem' in encoded)
    return failure(attempt, {
      code: 'output_invalid',
      message: `What stage ${stageName} returned cannot be stored: ${encoded.path} ${encoded.problem}.`,
    })
  const bytes = Buffer.byteLength(encoded.json)
  if (bytes > config.maxOutputBytes)
    return failure(attempt, {
      code: 'output_too_large',
      message: `Stage ${stageName} returned ${bytes} bytes; the limit is ${config.maxOutputBytes} (setting maxOutputBytes). Store large data elsewhere and return a reference.`,
    })
  return { move, stageName, output: encoded.json, hasFlaws }
}

const permanentCodes = new Set([
  'permanent',
  'input_invalid',
  'output_invalid',
  'output_too_large',
  'item_invalid',
  'items_failed',
  'barrier_expired',
])

/** The outcome of an attempt that failed with this error. */
export function failure(attempt: Attempt, error: JobError): Outcome {
  // a handler that ends because it was asked to is not at fault
  if (attempt.abortedBy === 'shutdown' || attempt.abortedBy === 'lease_lost') return { move: 'release' }
  const { stage, row } = attempt
  if (permanentCodes.has(error.code) || row.failures >= attempt.retries)
    return { move: 'fail', error, isOptional: stage.optional === true && !row.is_part }
  return { move: 'retry', error, delayMs: backoffMs(row.failures + 1, attempt.backoff) }
}

/** The error of an attempt that ran out of time. */
export function timeoutError(attempt: Attempt): JobError {
  return {
    code: 'timeout',
    message: `Stage ${attempt.stage.name} ran longer than its time-out of ${attempt.timeoutMs} ms.`,
  }
}

/** What went wrong, if a handler threw this. Never throws, whatever was thrown. */
export function errorOf(attempt: Attempt, thrown: unknown): JobError {
  if (attempt.abortedBy === 'timeout') return timeoutError(attempt)
  const error: JobError = { code: 'handler_failed', message: clean(messageOf(thrown)) }
  try {
    const stack = stackOf(thrown)
    return { ...error, code: codeOf(thrown), ...(stack && { stack: clean(stack) }) }
  } catch {
    return error
  }
}

function codeOf(thrown: unknown): JobError['code'] {
  if (thrown instanceof PermanentError || (thrown as Error | null)?.name === 'PermanentError') return 'permanent'
  return thrown instanceof HoldfastError ? thrown.code : 'handler_failed'
}

function stackOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || typeof thrown.stack !== 'string') return undefined
  const lines = thrown.stack.split('\n').slice(1, 6)
  return lines.map((line) => line.trim()).join('\n')
}

/** Error texts come from anywhere: what Postgres can't hold is replaced, so that no failure is lost for its wording. */
function clean(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
