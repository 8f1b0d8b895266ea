import type { Config } from '../config/config.ts'
import { backoffMs } from '../job/backoff.ts'
import type { Backoff } from '../job/define.ts'
import { encodeStorable } from '../job/storable.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'

/** What decides how a job continues after an attempt: the rules of its stage, and how often it has failed. */
export interface Rules {
  stageName: string
  isLast: boolean
  isOptional: boolean
  /** How often the stage has failed before this attempt. */
  failures: number
  retries: number
  backoff: Required<Backoff>
}

/** An output in its stored form, or what is wrong with it. */
export type Encoded = { output: string | null } | { error: JobError }

/** The output of a stage as JSON text, if it can be stored and isn't too large. */
export function encodeOutput(config: Config, { stageName }: Rules, output: unknown): Encoded {
  if (output === undefined || output === null) return { output: null }
  const encoded = encodeStorable(output, 'output')
  if ('problem' in encoded) {
    const message = `The return value of stage ${stageName} cannot be stored: ${encoded.path} ${encoded.problem}.`
    return { error: { code: 'output_invalid', message } }
  }
  const bytes = Buffer.byteLength(encoded.json)
  if (bytes <= config.maxOutputBytes) return { output: encoded.json }
  const message = `Stage ${stageName} returned ${bytes} bytes; the limit is ${config.maxOutputBytes} (setting maxOutputBytes). Store large data elsewhere and return a reference.`
  return { error: { code: 'output_too_large', message } }
}

/** The outcome of an attempt that returned this. */
export function afterSuccess({ stageName, isLast }: Rules, output: string | null, hasFailedItems = false): Outcome {
  return { move: isLast ? 'finish' : 'advance', stageName, output, hasFailedItems }
}

const permanentCodes = new Set([
  'permanent',
  'input_invalid',
  'output_invalid',
  'output_too_large',
  'item_invalid',
  'items_failed',
  'barrier_expired',
  'signal_timeout',
])

/** The outcome of an attempt that failed with this error. */
export function afterFailure({ isOptional, failures, retries, backoff }: Rules, error: JobError): Outcome {
  if (permanentCodes.has(error.code) || failures >= retries) return { move: 'fail', error, isOptional }
  return { move: 'retry', error, delayMs: backoffMs(failures + 1, backoff) }
}
