import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf, PermanentError, retryAfterOf } from '../errors/errors.ts'
import { isLocked, isNobodysFault } from '../postgres/connection.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'
import { afterFailure, afterSuccess, encodeOutput, type Rules } from './rules.ts'

function rulesOf({ stage, job, row, allowance }: Attempt): Rules {
  return {
    stageName: stage.name,
    isLast: row.is_part || row.stage + 1 === job.stages.length,
    isOptional: stage.optional === true && !row.is_part,
    failures: row.failures,
    retries: allowance.retries,
    backoff: allowance.backoff,
  }
}

/** The outcome of an attempt whose handler returned this. `hasFailedItems`: some items failed, within the threshold. */
export function success(config: Config, attempt: Attempt, output: unknown, hasFailedItems = false): Outcome {
  const rules = rulesOf(attempt)
  const encoded = encodeOutput(config, rules, output)
  if ('error' in encoded) return failure(attempt, encoded.error)
  return afterSuccess(rules, encoded.output, hasFailedItems)
}

/** The outcome of an attempt that failed with this error. */
export function failure(attempt: Attempt, error: JobError): Outcome {
  // a handler that ends because it was aborted is not at fault
  if (attempt.abortedBy === 'shutdown' || attempt.abortedBy === 'lease_lost') return { move: 'release' }
  return afterFailure(rulesOf(attempt), error)
}

/**
 * Whether an error of our own API is not the handler's fault: our database was unreachable or full, or another transaction kept a row locked
 * for longer than a write waits. Then the attempt is released, which costs no retry, and its slot is free for jobs that can go on. It is
 * claimed again soon, and may wait again.
 */
export function isBlameless(thrown: unknown): boolean {
  return thrown instanceof HoldfastError && (isNobodysFault(thrown) || isLocked(thrown))
}

/** The outcome of an attempt whose handler threw this. */
export function thrownBy(attempt: Attempt, thrown: unknown): Outcome {
  const holdMs = attempt.abortedBy ? undefined : retryAfterOf(thrown)
  return holdMs === undefined ? failure(attempt, errorOf(attempt, thrown)) : { move: 'release', holdMs }
}

/** The error of an attempt that exceeded its timeout. */
export function timeoutError(attempt: Attempt): JobError {
  return {
    code: 'timeout',
    message: `Stage ${attempt.stage.name} exceeded its timeout of ${attempt.allowance.timeoutMs} ms.`,
  }
}

/** The error to store for what a handler threw. Never throws, whatever that was. */
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

/** Replaces what Postgres can't store: a strange error message must not keep a failure from being written. */
export function clean(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
