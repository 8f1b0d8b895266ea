/** Every error code that Holdfast can return, with its HTTP status and meaning. Codes are part of the API. */
export const errorCodes = {
  input_invalid: { status: 422, meaning: 'The input does not match the schema of the job kind.' },
  input_too_large: { status: 413, meaning: 'The `input` or `meta` of the job exceeds the configured limit.' },
  not_storable: { status: 422, meaning: 'A value contains something that Postgres cannot store as JSON.' },
  output_invalid: { status: 500, meaning: 'A stage returned a value that cannot be stored.' },
  output_too_large: { status: 500, meaning: 'A stage returned a value larger than the configured limit.' },
  option_invalid: { status: 422, meaning: 'An option has an invalid value.' },
  key_conflict: { status: 422, meaning: 'This idempotency key was already used with a different kind or input.' },
  unknown_kind: { status: 404, meaning: 'No job kind with that name is registered.' },
  kind_invalid: { status: 500, meaning: 'A job definition is invalid.' },
  middleware_invalid: { status: 500, meaning: 'A middleware is invalid, or did not pass its job on exactly once.' },
  id_invalid: { status: 400, meaning: 'The value is not a valid job id.' },
  job_not_found: { status: 404, meaning: 'No job has that id.' },
  job_gone: {
    status: 410,
    meaning: 'The job has ended and was removed when its retention period expired.',
  },
  move_illegal: { status: 409, meaning: 'The state of the job does not allow this operation.' },
  job_failed: { status: 409, meaning: 'The job failed, so there is no result.' },
  job_cancelled: { status: 409, meaning: 'The job was cancelled, so there is no result.' },
  result_timeout: {
    status: 504,
    meaning: 'The job did not reach a final state within the timeout that the caller set.',
  },
  timeout: { status: 500, meaning: 'A stage exceeded its timeout.' },
  handler_failed: { status: 500, meaning: 'A stage threw an error.' },
  permanent: { status: 500, meaning: 'A stage threw an error that a retry cannot fix.' },
  crashed: { status: 500, meaning: 'The worker running this attempt was lost.' },
  quarantined: { status: 500, meaning: 'The job lost more workers than its crash budget allows.' },
  item_invalid: {
    status: 500,
    meaning:
      'A fan-out produced an item that cannot be stored, does not match its schema, or repeats the key of another item.',
  },
  items_failed: { status: 500, meaning: 'More items of a fan-out failed than it allows.' },
  barrier_expired: { status: 500, meaning: 'The items of a fan-out did not finish before it expired.' },
  signal_timeout: { status: 500, meaning: 'A stage waited for a signal that did not come in time.' },
  signal_unknown: { status: 422, meaning: 'No stage of the kind waits for a signal with that name.' },
  signal_refused: { status: 409, meaning: 'The job has ended, or no longer waits for that signal.' },
  barrier_conflict: {
    status: 409,
    meaning: 'A barrier with that id is already open with different parts or for another tenant.',
  },
  part_unknown: { status: 404, meaning: 'The barrier has no part with that name.' },
  owner_unknown: { status: 422, meaning: 'No owner with that name is configured in this process.' },
  owner_failed: {
    status: 502,
    meaning: 'The owner of an execution did not respond, or sent an invalid response.',
  },
  tenant_missing: { status: 500, meaning: 'A barrier has lost its tenant, so its owner cannot be asked.' },
  bulk_not_found: { status: 404, meaning: 'No bulk operation has that id.' },
  bulk_ended: { status: 409, meaning: 'The bulk operation has already finished.' },
  bulk_matches_nothing: { status: 422, meaning: 'No job matches the filter of the bulk operation.' },
  bulk_conflict: { status: 409, meaning: 'Another bulk operation already has that id.' },
  bulk_limit: { status: 429, meaning: 'Too many bulk operations are running.' },
  event_type_unknown: { status: 422, meaning: 'No event has that type.' },
  group_invalid: { status: 422, meaning: 'The name or number of partitions of a group is invalid.' },
  group_not_found: { status: 404, meaning: 'No group has that name.' },
  webhook_url_invalid: { status: 422, meaning: 'Webhooks cannot be sent to that URL.' },
  webhook_url_refused: { status: 422, meaning: 'Webhooks to that address are not allowed.' },
  webhook_secret_invalid: { status: 422, meaning: 'The signing secret does not have the form whsec_….' },
  webhook_header_invalid: { status: 422, meaning: 'A webhook header is malformed or reserved.' },
  endpoint_not_found: { status: 404, meaning: 'No webhook endpoint has that id.' },
  too_many_endpoints: { status: 409, meaning: 'The tenant has reached its limit of webhook endpoints.' },
  webhooks_busy: { status: 429, meaning: 'The tenant has reached its limit of webhooks in flight.' },
  delivery_not_found: { status: 404, meaning: 'No delivery has that id.' },
  delivery_pending: { status: 409, meaning: 'The delivery has not been sent yet, so there is nothing to replay.' },
  secret_key_wrong: {
    status: 500,
    meaning: 'A stored secret cannot be decrypted because the secret key is missing or different.',
  },
  schedule_invalid: { status: 422, meaning: 'The schedule has an invalid pattern, time zone or option, or no slots.' },
  schedule_not_found: { status: 404, meaning: 'The tenant has no schedule with that name.' },
  schedule_conflict: { status: 409, meaning: 'Others keep changing the schedule at the same time.' },
  too_many_schedules: { status: 409, meaning: 'The tenant has reached its limit of schedules.' },
  session_not_found: { status: 404, meaning: 'No remote worker session has that id.' },
  session_ended: {
    status: 410,
    meaning: 'The session has ended and all its attempts were reassigned. Open a new session.',
  },
  kinds_exhausted: { status: 429, meaning: 'The tenant has reached its limit of registered kinds.' },
  sessions_exhausted: { status: 429, meaning: 'The tenant has reached its limit of open remote worker sessions.' },
  handlers_unresponsive: {
    status: 500,
    meaning:
      'Too many handlers ignored their abort signal and are still running, so the worker drained. Replace the process.',
  },
  worker_failed: {
    status: 500,
    meaning: 'The worker could not keep up its heartbeat and stopped. Replace the process.',
  },
  config_invalid: { status: 500, meaning: 'A setting is invalid, or two settings conflict.' },
  database_unreachable: { status: 503, meaning: 'The database cannot be reached.' },
  database_refused: {
    status: 503,
    meaning: 'The database refused the connection: the user, password, database name or TLS settings are wrong.',
  },
  database_forbidden: { status: 503, meaning: 'The database user lacks a privilege that Holdfast needs.' },
  database_read_only: {
    status: 503,
    meaning: 'The database is read-only: it is a replica, or is configured as read-only.',
  },
  database_timeout: { status: 503, meaning: 'The database did not complete a statement in time.' },
  database_overloaded: {
    status: 503,
    meaning: 'The database has run out of connections or memory, or has reached another limit.',
  },
  database_full: { status: 503, meaning: 'The disk of the database server is full.' },
  database_failed: { status: 503, meaning: 'The database server reported an internal error.' },
  database_unsupported: { status: 500, meaning: 'The version of the database server is not supported.' },
  schema_missing: { status: 503, meaning: 'The database has no Holdfast schema yet.' },
  schema_older: { status: 503, meaning: 'The database schema is older than this program.' },
  schema_newer: { status: 503, meaning: 'The database schema is newer than this program.' },
  schema_unreleased: {
    status: 503,
    meaning: 'The database was created by a pre-release version with different tables.',
  },
  schema_changed: { status: 500, meaning: 'An applied migration differs from its file.' },
  embedded_unavailable: { status: 500, meaning: 'Embedded Postgres is not available on this platform.' },
  embedded_start_failed: { status: 500, meaning: 'The embedded Postgres did not start.' },
  data_folder_in_use: { status: 500, meaning: 'Another process is using this data folder.' },
  data_folder_version: { status: 500, meaning: 'The data folder belongs to another major version of Postgres.' },
  data_folder_unusable: { status: 500, meaning: 'The data folder cannot be used.' },
  prove_refused: { status: 409, meaning: 'The database is in use, so `prove` must not break its connections.' },
  bench_refused: { status: 409, meaning: 'The database is in use, so a benchmark must not load its server.' },
  module_invalid: { status: 500, meaning: 'The module with the job definitions cannot be loaded.' },
  request_invalid: {
    status: 422,
    meaning: 'The request does not match the schema of the operation.',
  },
  body_malformed: { status: 400, meaning: 'The body is not well-formed JSON in UTF-8.' },
  body_too_large: { status: 413, meaning: 'The body is larger than the operation allows.' },
  content_type_unsupported: { status: 415, meaning: 'The body must be application/json in UTF-8, not compressed.' },
  route_not_found: { status: 404, meaning: 'No route matches that path.' },
  method_not_allowed: { status: 405, meaning: 'That path does not support this method.' },
  key_missing: { status: 401, meaning: 'The request has no API key.' },
  key_refused: { status: 401, meaning: 'The API key does not exist, was revoked or has expired.' },
  key_not_found: { status: 404, meaning: 'No API key has that id.' },
  key_exceeds_maker: {
    status: 403,
    meaning: 'An API key cannot create a key with more permissions or a later expiry than its own.',
  },
  scope_missing: { status: 403, meaning: 'The API key lacks the scope that the operation requires.' },
  tenant_forbidden: { status: 403, meaning: 'The API key belongs to another tenant.' },
  host_refused: {
    status: 403,
    meaning: 'Without API keys, the server accepts only requests from this machine with a local host name.',
  },
  rate_limited: {
    status: 429,
    meaning: 'One tenant, API key or address sent too many requests in a short time.',
  },
  waits_exhausted: {
    status: 429,
    meaning: 'The tenant or API key has too many waiting requests open.',
  },
  header_invalid: { status: 400, meaning: 'The request is not well-formed HTTP, or one of its headers is malformed.' },
  headers_too_large: { status: 431, meaning: 'The path and headers of the request are too large.' },
  request_slow: { status: 408, meaning: 'The request took too long to arrive.' },
  pipeline_too_long: { status: 429, meaning: 'The client pipelined too many requests on one connection.' },
  connections_exhausted: { status: 503, meaning: 'The server has reached its connection limit.' },
  internal: { status: 500, meaning: 'An internal error occurred.' },
  not_running: { status: 503, meaning: 'This part of Holdfast is stopped or was never started.' },
} as const satisfies Record<string, { status: number; meaning: string }>

/** The code of an error. */
export type ErrorCode = keyof typeof errorCodes

/** The error class of Holdfast: a stable code and a message that says what happened and what to do. */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HoldfastError'
    this.code = code
    this.details = options.details
  }

  /** The HTTP status of this error. */
  get status(): number {
    return errorCodes[this.code].status
  }
}

/** Throw this from a handler when a retry cannot help: the attempt fails at once, no matter how many retries are left. */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PermanentError'
  }
}

/** The longest time that a job may be held back by RateLimited: a week. */
export const longestHoldMs = 7 * 86_400_000

/**
 * Throw this from a handler when another system asks to slow down. The job is queued again for later at no cost of a retry, and no job with the
 * same limit key starts before then.
 */
export class RateLimited extends Error {
  /** How long to wait. */
  readonly retryAfterMs: number

  constructor({ retryAfterMs, message }: { retryAfterMs: number; message?: string }) {
    super(message ?? `The rate is limited; wait ${retryAfterMs} ms.`)
    this.name = 'RateLimited'
    if (!(Number.isFinite(retryAfterMs) && retryAfterMs >= 0 && retryAfterMs <= longestHoldMs))
      throw new HoldfastError(
        'option_invalid',
        `retryAfterMs must be a number of milliseconds from 0 to ${longestHoldMs} (a week), not ${JSON.stringify(retryAfterMs)}.`,
      )
    this.retryAfterMs = retryAfterMs
  }
}

/** How long an error asks to wait, if it is a RateLimited, of this copy of Holdfast or another. */
export function retryAfterOf(thrown: unknown): number | undefined {
  const given = thrown as { name?: unknown; retryAfterMs?: unknown } | null | undefined
  try {
    if (given?.name !== 'RateLimited' || typeof given.retryAfterMs !== 'number') return undefined
    return Math.min(longestHoldMs, Math.max(0, given.retryAfterMs)) || 0
  } catch {
    return undefined
  }
}

/** The message of anything that was thrown, shortened if necessary. Never throws itself. */
export function messageOf(thrown: unknown): string {
  const text = textOf(thrown)
  const short = text.length > 2000 ? `${text.slice(0, 2000)}…` : text
  // Postgres refuses NUL: an error that can't be stored would recur forever
  return short.replaceAll('\0', '\uFFFD').toWellFormed()
}

function textOf(thrown: unknown): string {
  try {
    const text = thrown instanceof Error ? thrown.message || thrown.name : thrown
    return String(text)
  } catch {
    // an object without a prototype, a getter that throws, a revoked proxy: anything can be thrown
    return 'The thrown value has no message.'
  }
}
