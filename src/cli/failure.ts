import { HoldfastError, messageOf } from '../errors/errors.ts'
import { complain, paint } from './terminal.ts'

/** How a failure is told. */
export interface TellHow {
  isJson: boolean
  /** Whether the stack belongs to it: for those who look into Holdfast itself. */
  isVerbose: boolean
}

// what the caller typed is wrong, so that trying again cannot help
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

/** Says what went wrong, in a sentence or in JSON, and answers the exit code: 2 for a wrong use, 1 for the rest. */
export function tellFailure(error: unknown, { isJson, isVerbose }: TellHow): number {
  const code = codeOf(error)
  const message = messageOf(error)
  if (isJson) complain(JSON.stringify({ error: { code, message } }))
  if (!isJson) complain(`${paint('red', 'error', process.stderr)} ${code}: ${message}`)
  if (isVerbose && error instanceof Error) complain(stackOf(error))
  return usageCodes.includes(code) ? 2 : 1
}

/** The code of whatever was thrown; `unexpected` for what is no failure that Holdfast knows. */
export function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : 'unexpected'
}

/** Whether stacks were asked for, by flag or by log level. */
export function isVerboseIn(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean {
  return argv.includes('--verbose') || /^(debug|trace)$/.test(env.HOLDFAST_LOG_LEVEL ?? '')
}

function stackOf(error: Error): string {
  const { cause } = error
  return `${error.stack ?? ''}${cause instanceof Error ? `\nbecause ${stackOf(cause)}` : ''}`
}
