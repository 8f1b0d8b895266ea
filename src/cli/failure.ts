import { HoldfastError, messageOf } from '../errors/errors.ts'
import { complain, paint } from './terminal.ts'

/** How to report a failure. */
export interface TellHow {
  isJson: boolean
  /** Whether to include the stack, for debugging Holdfast itself. */
  isVerbose: boolean
}

// the command line is wrong, so running it again can't help
const usageCodes = [
  'option_invalid',
  'config_invalid',
  'id_invalid',
  'event_type_unknown',
  'group_invalid',
  'webhook_url_invalid',
  'webhook_url_refused',
  'webhook_secret_invalid',
  'webhook_header_invalid',
]

/** Prints an error as a sentence or as JSON, and returns the exit code: 2 for incorrect usage, 1 for anything else. */
export function tellFailure(error: unknown, { isJson, isVerbose }: TellHow): number {
  const code = codeOf(error)
  const message = messageOf(error)
  if (isJson) complain(JSON.stringify({ error: { code, message } }))
  if (!isJson) complain(`${paint('red', 'error', process.stderr)} ${code}: ${message}`)
  if (isVerbose && error instanceof Error) complain(stackOf(error))
  return usageCodes.includes(code) ? 2 : 1
}

/** The code of an error; `unexpected` if it is not an error of Holdfast. */
export function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : 'unexpected'
}

/** Whether stacks were requested, by flag or by log level. */
export function isVerboseIn(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean {
  return argv.includes('--verbose') || /^(debug|trace)$/.test(env.HOLDFAST_LOG_LEVEL ?? '')
}

function stackOf(error: Error): string {
  const { cause } = error
  return `${error.stack ?? ''}${cause instanceof Error ? `\nbecause ${stackOf(cause)}` : ''}`
}
