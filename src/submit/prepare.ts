import { createHash } from 'node:crypto'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { canonical } from '../job/canonical.ts'
import { type AnyJob, isName, isPriority } from '../job/define.ts'
import { partsOf } from '../job/exact-json.ts'
import { freshJobId, type JobId } from '../job/id.ts'
import { checkedLimitKey, limitKeyOf } from '../job/limit.ts'
import { RawJson } from '../job/raw-json.ts'
import { encodeStorable } from '../job/storable.ts'
import { type OnConflict, type Unique, uniqueProblem } from '../job/unique.ts'
import { isTraceparent } from '../trace/trace.ts'

/** Options of a submit. */
export interface SubmitOptions {
  /** Idempotency key. Submitting the same key and input again returns the same job. */
  key?: string
  /** What else must be the same for a key to return the same job: any JSON value. Default: only kind and input. */
  keyCovers?: unknown
  /** Makes the job unique while it is queued or live, or for some time. For requests that may be sent twice, use `key`. */
  unique?: Unique
  /** What to do if another job holds the unique key. Default: `keep`. */
  onConflict?: OnConflict
  /** The tenant that the job belongs to. Default: `default`. */
  tenant?: string
  /** The earliest time to run the job. */
  runAt?: Date
  /** Do not run the job before this many milliseconds have passed, by the database's clock. */
  delayMs?: number
  /** 1 (first) to 4 (last). Default: the kind's priority. */
  priority?: number
  /** What the limit of its kind counts the job by, in place of the key that the kind computes from the input. */
  limitKey?: string
  /** A small JSON object to store with the job. */
  meta?: Record<string, unknown>
  /** A webhook for the events of this job. */
  webhook?: JobWebhook
  /** The W3C traceparent that this submit belongs to; passed on with webhooks. Default: the active span, if any. */
  traceparent?: string
}

/** The webhook of one job. */
export interface JobWebhook {
  /** Where to send: an https URL, or any URL of a host in the `webhookAllow` setting. */
  url: string
  /** The signing secret, `whsec_…`, that the receiver uses to verify deliveries. */
  secret: string
  /** Which events to send. Default: those that end a job. */
  types?: string | readonly string[]
  /** Headers to add, such as credentials for the receiver. */
  headers?: Record<string, string>
}

/** A job's webhook in its stored form: headers as JSON, secret sealed. */
export interface PreparedWebhook {
  url: string
  origin: string
  types: string[]
  headers: string
  secret: string
}

/** How a job is unique. */
export interface PreparedUnique {
  key: string
  while: 'queued' | 'live'
  windowMs: number | null
  onConflict: OnConflict
}

/** A validated job, ready to be written. */
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
  /** Null if the job is not unique. */
  unique: PreparedUnique | null
  /** JSON; as bytes if it was submitted as bytes. */
  input: string | Buffer
  inputBytes: number
  meta: string | null
  trace: string | null
  webhook: PreparedWebhook | null
  /** What the limit of its kind counts it by; null if that has no key. */
  limitKey: string | null
}

/**
 * Validates an input and its options. The webhook is already validated. Returns a promise only if the schema does: for
 * many jobs, a promise each would cost more than the validation.
 */
export function prepare(
  config: Config,
  job: AnyJob,
  input: unknown,
  options: SubmitOptions = {},
  webhook: PreparedWebhook | null = null,
): PreparedJob | Promise<PreparedJob> {
  const checked = job.input?.['~standard'].validate(input)
  // any thenable: what a schema library returns need not be a Promise of this realm
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
  const { json, bytes } = encodeInput(config, job, input)
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
        : fingerprintOf(job.kind, partsOf(input) ? input : JSON.parse(String(json)), options.keyCovers),
    unique: uniqueOf(options),
    input: json,
    inputBytes: bytes,
    meta: metaOf(config, options.meta),
    trace: options.traceparent ?? null,
    webhook,
    limitKey: keyOfLimit(job, options, () => parsed(input, json)),
  }
}

/** The same job with another input, such as the one that a middleware returned. */
export function withInput(config: Config, job: AnyJob, prepared: PreparedJob, input: unknown): PreparedJob {
  const { json, bytes } = encodeInput(config, job, input)
  return { ...prepared, input: json, inputBytes: bytes }
}

function encodeInput(config: Config, job: AnyJob, input: unknown): { json: string | Buffer; bytes: number } {
  const json =
    input instanceof RawJson ? input.bytes : encode(input === undefined && !job.input ? null : input, 'input')
  const bytes = Buffer.byteLength(json)
  if (bytes <= config.maxInputBytes) return { json, bytes }
  throw new HoldfastError(
    'input_too_large',
    `The input of kind ${job.kind} is ${bytes} bytes; the limit is ${config.maxInputBytes} (setting maxInputBytes). Store large data elsewhere and submit a reference.`,
  )
}

function keyOfLimit({ kind, limit }: AnyJob, { limitKey }: SubmitOptions, input: () => unknown): string | null {
  if (limitKey !== undefined) return checkedLimitKey(kind, limitKey)
  return limit?.key === undefined ? null : limitKeyOf(kind, limit, input())
}

/** The input as an object, also if it was submitted as bytes. */
function parsed(input: unknown, json: string | Buffer): unknown {
  return input instanceof RawJson ? JSON.parse(String(json)) : input
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
  const shown = issues.slice(0, 5).map(({ path, message }) => (path ? `${path}: ${message}` : message))
  throw new HoldfastError(
    'input_invalid',
    `The input does not match the schema of kind ${job.kind}: ${shown.join('; ')}.`,
    {
      details: { issues },
    },
  )
}

function pathOf(path: readonly (PropertyKey | { key: PropertyKey })[] = []): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}

function encode(value: unknown, name: string): string {
  const encoded = encodeStorable(value, name)
  if ('json' in encoded) return encoded.json
  throw new HoldfastError('not_storable', `${encoded.path} ${encoded.problem}.`, { details: { ...encoded } })
}

function uniqueOf({ unique, onConflict = 'keep' }: SubmitOptions): PreparedUnique | null {
  if (!unique) return null
  return { key: unique.key, while: unique.while ?? 'live', windowMs: unique.windowMs ?? null, onConflict }
}

function checkOptions(options: SubmitOptions): void {
  const { key, tenant, runAt, delayMs, priority, traceparent } = options
  const problem = uniqueProblem(options.unique, options.onConflict)
  if (problem) refuse(problem.rule, problem.value)
  if (key !== undefined && options.unique !== undefined)
    throw new HoldfastError(
      'option_invalid',
      'Pass either key or unique, not both: a key keeps returning the same job, and a unique key is free again once its job has ended.',
    )
  if (
    key !== undefined &&
    !(typeof key === 'string' && key.length > 0 && key.length <= 300 && 'json' in encodeStorable(key, 'key'))
  )
    refuse('key must be a string of 1 to 300 characters without NUL', key)
  if (tenant !== undefined && !isName(tenant))
    refuse('tenant must be up to 100 letters, digits and any of _ . : -', tenant)
  if (priority !== undefined && !isPriority(priority)) refuse('priority must be 1 (first) to 4 (last)', priority)
  if (runAt !== undefined && delayMs !== undefined)
    throw new HoldfastError('option_invalid', 'Pass either runAt or delayMs, not both.')
  if (runAt !== undefined && !(runAt instanceof Date && runAt.getTime() >= 0 && runAt.getTime() <= farthestMs))
    refuse('runAt must be a valid Date between 1970 and the year 10000', runAt)
  if (delayMs !== undefined && !(Number.isFinite(delayMs) && delayMs >= 0 && delayMs <= 3_153_600_000_000))
    refuse('delayMs must be between 0 ms and 100 years', delayMs)
  if (traceparent !== undefined && !isTraceparent(traceparent))
    refuse(
      'traceparent must be in W3C format, such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
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
