import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import type { Flow } from '../job/middleware.ts'
import { RawJson } from '../job/raw-json.ts'
import { type PreparedJob, type PreparedWebhook, prepare, type SubmitOptions, withInput } from './prepare.ts'

/** A job to prepare. The webhook is already validated. */
export interface ToPrepare {
  job: AnyJob
  input: unknown
  options: SubmitOptions
  webhook?: PreparedWebhook | null
}

/**
 * Prepares a job, through the middleware. Everything is validated as the caller passed it; the fingerprint of a key covers that too, because
 * a middleware that encrypts never returns the same twice. Only the input to store comes from the middleware.
 */
export function prepareThrough(
  { config, flow }: { config: Config; flow: Flow },
  { job, input, options, webhook = null }: ToPrepare,
): PreparedJob | Promise<PreparedJob> {
  const checked = prepare(config, job, input, options, webhook)
  return flow.isEmpty ? checked : pass({ config, flow }, job, input, checked)
}

async function pass(
  { config, flow }: { config: Config; flow: Flow },
  job: AnyJob,
  input: unknown,
  checked: PreparedJob | Promise<PreparedJob>,
): Promise<PreparedJob> {
  const prepared = await checked
  const { kind, tenant } = prepared
  const value = input instanceof RawJson ? JSON.parse(input.bytes.toString()) : input
  const stored = await flow.submit({ kind, tenant, input: value === undefined ? null : value, isItem: false })
  return withInput(config, job, prepared, stored)
}
