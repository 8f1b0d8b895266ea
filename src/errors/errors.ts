/** Every error code that Holdfast can answer with: its HTTP status and what it means. Codes are API. */
export const errorCodes = {
  input_invalid: { status: 422, meaning: 'The input does not match the schema of its kind.' },
  input_too_large: { status: 413, meaning: 'The input, or the `meta`, of a job is larger than the configured limit.' },
  not_storable: { status: 422, meaning: 'A value holds something that JSON in Postgres cannot hold.' },
  output_invalid: { status: 500, meaning: 'A stage returned something that cannot be stored.' },
  output_too_large: { status: 500, meaning: 'A stage returned more than the configured limit.' },
  option_invalid: { status: 422, meaning: 'An option of a call has a wrong value.' },
  key_conflict: { status: 422, meaning: 'This idempotency key was used before with another kind or input.' },
  unknown_kind: { status: 404, meaning: 'No kind of that name is known here.' },
  kind_invalid: { status: 500, meaning: 'A job definition is wrong.' },
  id_invalid: { status: 400, meaning: 'That is not a job id.' },
  job_not_found: { status: 404, meaning: 'There is no job with that id.' },
  move_illegal: { status: 409, meaning: 'The job is in a state that does not allow this.' },
  job_failed: { status: 409, meaning: 'The job failed, so there is no result.' },
  job_cancelled: { status: 409, meaning: 'The job was cancelled, so there is no result.' },
  result_timeout: { status: 504, meaning: 'The job was not final within the time that the caller gave.' },
  timeout: { status: 500, meaning: 'A stage ran longer than its time-out.' },
  handler_failed: { status: 500, meaning: 'A stage threw an error.' },
  permanent: { status: 500, meaning: 'A stage threw an error that no retry can mend.' },
  crashed: { status: 500, meaning: 'The worker of this attempt was lost.' },
  quarantined: { status: 500, meaning: 'The job lost more workers than its crash budget allows.' },
  item_invalid: {
    status: 500,
    meaning: 'A fan-out gave an item that cannot be stored, does not fit its schema, or has the key of another.',
  },
  items_failed: { status: 500, meaning: 'More items of a fan-out failed than it tolerates.' },
  barrier_expired: { status: 500, meaning: 'The items of a fan-out took longer than it allows.' },
  barrier_conflict: {
    status: 409,
    meaning: 'A barrier with that id is open already, with other parts or for another tenant.',
  },
  part_unknown: { status: 404, meaning: 'The barrier has no part of that name.' },
  owner_unknown: { status: 422, meaning: 'No owner of that name is configured in this process.' },
  owner_failed: {
    status: 502,
    meaning: 'The owner of an execution did not answer, or with something that is no answer of its own.',
  },
  tenant_missing: { status: 500, meaning: 'A barrier has lost its tenant, so nobody can ask its owner.' },
  event_type_unknown: { status: 422, meaning: 'There is no event of that type.' },
  group_invalid: { status: 422, meaning: 'A group of readers cannot have that name or that many partitions.' },
  group_not_found: { status: 404, meaning: 'There is no group of that name.' },
  webhook_url_invalid: { status: 422, meaning: 'That is not a URL that a webhook can be sent to.' },
  webhook_url_refused: { status: 422, meaning: 'Webhooks may not be sent to that address.' },
  webhook_secret_invalid: { status: 422, meaning: 'That is not a signing secret of the form whsec_….' },
  webhook_header_invalid: { status: 422, meaning: 'A header of a webhook is malformed, or not yours to set.' },
  endpoint_not_found: { status: 404, meaning: 'There is no webhook endpoint with that id.' },
  too_many_endpoints: { status: 409, meaning: 'The tenant has as many webhook endpoints as it may have.' },
  webhooks_busy: { status: 429, meaning: 'The tenant has as many webhooks in flight as it may have.' },
  delivery_not_found: { status: 404, meaning: 'There is no delivery with that id.' },
  delivery_pending: { status: 409, meaning: 'That delivery is still to be sent, so there is nothing to replay.' },
  secret_key_wrong: {
    status: 500,
    meaning: 'A stored secret cannot be unsealed, because the secret key is missing or another one.',
  },
  session_not_found: { status: 404, meaning: 'There is no session of a remote worker with that id.' },
  session_ended: {
    status: 410,
    meaning: 'The session was ended, and all its attempts were given away; open a new one.',
  },
  kinds_exhausted: { status: 429, meaning: 'The tenant has registered as many kinds as it may.' },
  sessions_exhausted: { status: 429, meaning: 'The tenant has as many sessions of remote workers open as it may.' },
  handlers_unresponsive: {
    status: 500,
    meaning: 'Too many handlers of the worker ignored their signal and still run, so it drained; replace the process.',
  },
  worker_failed: {
    status: 500,
    meaning: 'The worker of this process could not keep its heartbeat, so it stopped; replace the process.',
  },
  config_invalid: { status: 500, meaning: 'A setting, or the relation of two settings, is wrong.' },
  database_unreachable: { status: 503, meaning: 'The database cannot be reached.' },
  database_refused: {
    status: 503,
    meaning: 'The database refuses the connection: user, password, database name or TLS settings are wrong.',
  },
  database_forbidden: { status: 503, meaning: 'The database user lacks a privilege that Holdfast needs.' },
  database_read_only: { status: 503, meaning: 'The database is read-only: a replica, or set so.' },
  database_timeout: { status: 503, meaning: 'The database did not complete a statement in time.' },
  database_overloaded: {
    status: 503,
    meaning: 'The database has no free connection or memory, or reached another limit.',
  },
  database_full: { status: 503, meaning: 'The disk of the database server is full.' },
  database_failed: { status: 503, meaning: 'The database server failed internally.' },
  database_unsupported: { status: 500, meaning: 'The database server is too old.' },
  schema_missing: { status: 503, meaning: 'The database has no Holdfast schema yet.' },
  schema_older: { status: 503, meaning: 'The database schema is older than this program.' },
  schema_newer: { status: 503, meaning: 'The database schema is newer than this program.' },
  schema_changed: { status: 500, meaning: 'A migration that was already applied differs from its file.' },
  embedded_unavailable: { status: 500, meaning: 'There is no embedded Postgres for this platform.' },
  embedded_start_failed: { status: 500, meaning: 'The embedded Postgres did not start.' },
  data_folder_in_use: { status: 500, meaning: 'Another process uses this data folder.' },
  data_folder_version: { status: 500, meaning: 'The data folder belongs to another major version of Postgres.' },
  data_folder_unusable: { status: 500, meaning: 'The data folder cannot be used.' },
  prove_refused: { status: 409, meaning: 'The database is in use, so no proof may break its connections.' },
  bench_refused: { status: 409, meaning: 'The database is in use, so no benchmark may load its server.' },
  module_invalid: { status: 500, meaning: 'The module with the job definitions cannot be loaded.' },
  request_invalid: {
    status: 422,
    meaning: 'Something in the request does not have the form that the operation asks for.',
  },
  body_malformed: { status: 400, meaning: 'The body is not well-formed JSON in UTF-8.' },
  body_too_large: { status: 413, meaning: 'The body is larger than the operation allows.' },
  content_type_unsupported: { status: 415, meaning: 'The body must be application/json in UTF-8, not compressed.' },
  route_not_found: { status: 404, meaning: 'There is nothing at that path.' },
  method_not_allowed: { status: 405, meaning: 'That path does not know this method.' },
  key_missing: { status: 401, meaning: 'The request carries no API key.' },
  key_refused: { status: 401, meaning: 'There is no such API key, or it was revoked or has expired.' },
  key_not_found: { status: 404, meaning: 'There is no API key with that id.' },
  key_exceeds_maker: {
    status: 403,
    meaning: 'An API key cannot make one that can do more than itself, or that expires later.',
  },
  scope_missing: { status: 403, meaning: 'The API key does not have the scope that the operation asks for.' },
  tenant_forbidden: { status: 403, meaning: 'The API key is that of another tenant.' },
  host_refused: {
    status: 403,
    meaning: 'Without keys, the server answers only requests from this machine that name it as their host.',
  },
  rate_limited: {
    status: 429,
    meaning: 'Too many requests came from one tenant, with one API key or from one address in a short time.',
  },
  waits_exhausted: {
    status: 429,
    meaning: 'The tenant or the API key has too many requests open that wait for something.',
  },
  header_invalid: { status: 400, meaning: 'The request is not well-formed HTTP, or one of its headers is malformed.' },
  headers_too_large: { status: 431, meaning: 'The path and the headers of the request are too long.' },
  request_slow: { status: 408, meaning: 'The request took too long to arrive.' },
  pipeline_too_long: { status: 429, meaning: 'Too many requests were sent ahead on one connection.' },
  connections_exhausted: { status: 503, meaning: 'The server holds as many connections as it may.' },
  internal: { status: 500, meaning: 'Something went wrong on our side.' },
  not_running: { status: 503, meaning: 'This part of Holdfast was stopped or never started.' },
} as const satisfies Record<string, { status: number; meaning: string }>

/** The code of an error. */
export type ErrorCode = keyof typeof errorCodes

/** The one error class of Holdfast: a stable code, and a message that says what happened and what to do. */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HoldfastError'
    this.code = code
    this.details = options.details
  }

  /** The HTTP status that fits this error. */
  get status(): number {
    return errorCodes[this.code].status
  }
}

/** Throw this from a handler when no retry can help: the attempt fails at once, whatever retries are left. */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PermanentError'
  }
}

/** The message of anything that was thrown, in one line of bounded length. Never throws, whatever was thrown. */
export function messageOf(thrown: unknown): string {
  const text = textOf(thrown)
  const short = text.length > 2000 ? `${text.slice(0, 2000)}…` : text
  // Postgres refuses a NUL: an error that can't be written down would be met again and again, for ever
  return short.replaceAll('\0', '\uFFFD').toWellFormed()
}

function textOf(thrown: unknown): string {
  try {
    const text = thrown instanceof Error ? thrown.message || thrown.name : thrown
    return String(text)
  } catch {
    // an object without a prototype, a getter that throws, a revoked proxy: anything can be thrown
    return 'Something was thrown that has no text.'
  }
}
