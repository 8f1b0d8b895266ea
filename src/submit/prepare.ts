import { createHash } from 'node:crypto'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { canonical } from '../job/canonical.ts'
import { type AnyJob, isName, isPriority } from '../job/define.ts'
import { partsOf } from '../job/exact-json.ts'
import { freshJobId, type JobId } from '../job/id.ts'
import { encodeStorable } from '../job/storable.ts'
import { isTraceparent } from '../trace/trace.ts'

/** What a caller may say about one job. */
export interface SubmitOptions {
  /** The same key and input give the same job, however often it is submitted. */
  key?: string
  /** What else must be the same for a key to give the same job: anything that JSON can hold. Default: nothing but kind and input. */
  keyCovers?: unknown
  /** Who it is for. Default: `default`. */
  tenant?: string
  /** Not before this time. */
  runAt?: Date
  /** Not before so many milliseconds from now, by the database's clock. */
  delayMs?: number
  /** 1 (first) to 4 (last); default: the kind's. */
  priority?: number
  /** Anything small that should travel with the job. */
  meta?: Record<string, unknown>
  /** Told of this job, signed with the secret. By default of its end. */
  webhook?: JobWebhook
  /** The trace that this submit is part of, as W3C traceparent; default: the active span, if the process traces. Handed on with webhooks. */
  traceparent?: string
}

/** The webhook of one job. */
export interface JobWebhook {
  /** Where to: https, or any host of the setting `webhookAllow`. */
  url: string
  /** The signing secret, `whsec_…`; the receiver verifies with it. */
  secret: string
  /** Which events. Default: those that end a job. */
  types?: string | readonly string[]
  headers?: Record<string, string>
}

/** The webhook of a job, as it is stored: its headers as JSON, its secret sealed. */
export interface PreparedWebhook {
  url: string
  origin: string
  types: string[]
  headers: string
  secret: string
}

/** A job that was checked and is ready to be written. */
export interface PreparedJob {
  id: JobId
  kind: string
  queue: string
  tenant: string
  priority: number
  crashBudget: number
  delayMs: number
  runAt: Date | null
  key: string | null
  fingerprint: string | null
  input: string
  inputBytes: number
  meta: string | null
  trace: string | null
  webhook: PreparedWebhook | null
}

/**
 * Checks an input and its options; if something is wrong, nothing is written. A webhook comes checked. Answers at once unless the
 * schema takes its time: a promise for each of many jobs would cost more than the check.
 */
export function prepare(
  config: Config,
  job: AnyJob,
  input: unknown,
  options: SubmitOptions = {},
  webhook: PreparedWebhook | null = null,
): PreparedJob | Promise<PreparedJob> {
  const checked = job.input?.['~standard'].validate(input)
  // a promise of any make: what a schema library answers need not be one of this realm
  if (checked && 'then' in checked)
    return Promise.resolve(checked).then((later) => {
      refuseIssues(job, later)
      return prepareChecked(config, job, input, options, webhook)
    })
  if (checked) refuseIssues(job, checked)
  return prepareChecked(config, job, input, options, webhook)
}

function prepareChecked(
  config: Config,
  job: AnyJob,
  input: unknown,
  options: SubmitOptions,
  webhook: PreparedWebhook | null,
): PreparedJob {
  const json = encode(input === undefined && !job.input ? null : input, 'input')
  const bytes = Buffer.byteLength(json)
  if (bytes > config.maxInputBytes)
    throw new HoldfastError(
      'input_too_large',
      `The input of kind ${job.kind} is ${bytes} bytes; the limit is ${config.maxInputBytes} (setting maxInputBytes). Store large data elsewhere and submit a reference.`,
    )
  checkOptions(options)
  return {
    id: freshJobId(),
    kind: job.kind,
    queue: job.queue,
    tenant: options.tenant ?? 'default',
    priority: options.priority ?? job.priority,
    crashBudget: job.crashBudget ?? config.crashBudget,
    delayMs: options.delayMs ?? 0,
    runAt: options.runAt ?? null,
    key: options.key ?? null,
    fingerprint:
      options.key === undefined
        ? null
        : fingerprintOf(job.kind, partsOf(input) ? input : JSON.parse(json), options.keyCovers),
    input: json,
    inputBytes: bytes,
    meta: metaOf(config, options.meta),
    trace: options.traceparent ?? null,
    webhook,
  }
}

function metaOf({ maxMetaBytes }: Config, meta: SubmitOptions['meta']): string | null {
  if (meta === undefined) return null
  const json = encode(meta, 'meta')
  const bytes = Buffer.byteLength(json)
  if (bytes > maxMetaBytes)
    throw new HoldfastError(
      'input_too_large',
      `The meta of the job is ${bytes} bytes; the limit is ${maxMetaBytes} (setting maxMetaBytes). Put large data into the input, or store it elsewhere.`,
    )
  return json
}

function refuseIssues(job: AnyJob, checked: StandardSchemaV1.Result<unknown>): void {
  if (!checked.issues) return
  const issues = checked.issues.map((issue) => ({ path: pathOf(issue.path), message: issue.message }))
  const told = issues.slice(0, 5).map(({ path, message }) => (path ? `${path}: ${message}` : message))
  throw new HoldfastError('input_invalid', `The input does not fit kind ${job.kind}: ${told.join('; ')}.`, {
    details: { issues },
  })
}

function pathOf(path: readonly (PropertyKey | { key: PropertyKey })[] = []): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}

function encode(value: unknown, name: string): string {
  const encoded = encodeStorable(value, name)
  if ('json' in encoded) return encoded.json
  throw new HoldfastError('not_storable', `${encoded.path} ${encoded.problem}.`, { details: { ...encoded } })
}

function checkOptions(options: SubmitOptions): void {
  const { key, tenant, runAt, delayMs, priority, traceparent } = options
  if (
    key !== undefined &&
    !(typeof key === 'string' && key.length > 0 && key.length <= 300 && 'json' in encodeStorable(key, 'key'))
  )
    refuse('key must be a text of 1 to 300 characters without NUL', key)
  if (tenant !== undefined && !isName(tenant))
    refuse('tenant must be up to 100 letters, digits and any of _ . : -', tenant)
  if (priority !== undefined && !isPriority(priority)) refuse('priority must be 1 (first) to 4 (last)', priority)
  if (runAt !== undefined && delayMs !== undefined)
    throw new HoldfastError('option_invalid', 'Give either runAt or delayMs, not both.')
  if (runAt !== undefined && !(runAt instanceof Date && runAt.getTime() >= 0 && runAt.getTime() <= farthestMs))
    refuse('runAt must be a valid Date between 1970 and the year 10000', runAt)
  if (delayMs !== undefined && !(Number.isFinite(delayMs) && delayMs >= 0 && delayMs <= 3_153_600_000_000))
    refuse('delayMs must be milliseconds from 0 to 100 years', delayMs)
  if (traceparent !== undefined && !isTraceparent(traceparent))
    refuse(
      'traceparent must have the form of W3C, such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      traceparent,
    )
}

const farthestMs = Date.UTC(9999, 11, 31)

function refuse(rule: string, value: unknown): never {
  throw new HoldfastError('option_invalid', `The option ${rule}, not ${JSON.stringify(value) ?? String(value)}.`)
}

function fingerprintOf(kind: string, input: unknown, covers: unknown): string {
  const also = covers === undefined ? '' : `\n${canonical(JSON.parse(encode(covers, 'keyCovers')))}`
  return createHash('sha256').update(kind).update('\n').update(canonical(input)).update(also).digest('base64')
}
