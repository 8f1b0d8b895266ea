import { type ErrorCode, HoldfastError } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { connectTimeoutMs, details, isConnectionError } from './connection.ts'

/** An error of the database, or of the connection to it. */
interface Failure {
  /** A SQLSTATE, or the code of a network, file or TLS error. */
  code: string
  message: string
  /** The path of a file error. */
  path: string | undefined
  /** How long connecting was allowed to take. */
  connectMs: number
  /** The URL without its password. */
  where: string
}

interface Explanation {
  code: ErrorCode
  /** Matches codes, or the messages of errors without a code. */
  is: RegExp
  /** What happened, to what, and what to do. */
  says: (failure: Failure) => string
}

/** What errors mean, most specific first. */
const explanations: readonly Explanation[] = [
  {
    code: 'database_read_only',
    is: /^25006$/,
    says: ({ where, message }) =>
      `The database at ${where} is read-only: it is a replica, or default_transaction_read_only is on (${message}). Connect to the primary, or make the database writable.`,
  },
  {
    code: 'database_timeout',
    is: /^57014$/,
    says: ({ where, message }) =>
      /^no answer within/.test(message)
        ? `The database at ${where} did not answer a statement in time (${message}), so it was cancelled and had no effect. Look in pg_stat_activity for locks and load, or raise HOLDFAST_STATEMENT_TIMEOUT_MS.`
        : /statement timeout/.test(message)
          ? `The database at ${where} ended a statement that took longer than the statement_timeout of this server, database or role. It had no effect. Look in pg_stat_activity for what it waited for, or raise that setting.`
          : `A statement was cancelled on the database at ${where} (${message}). It had no effect.`,
  },
  {
    code: 'database_timeout',
    is: /^25P04$/,
    says: ({ where }) =>
      `The database at ${where} ended a transaction that took longer than the transaction_timeout of this server, database or role. It had no effect. Look in pg_stat_activity for what it waited for, or raise that setting.`,
  },
  {
    code: 'database_timeout',
    is: /^55P03$/,
    says: ({ where, message }) =>
      `A statement on the database at ${where} timed out waiting for a lock (${message}). It had no effect. Look in pg_stat_activity and pg_locks for the transaction that holds the lock.`,
  },
  {
    code: 'database_timeout',
    is: /^Query read timeout$/,
    says: ({ where }) =>
      `The database at ${where} did not answer a statement in time, so it is unknown whether the statement took effect. Look in pg_stat_activity for locks and load, check the network, or raise HOLDFAST_STATEMENT_TIMEOUT_MS.`,
  },
  {
    code: 'database_overloaded',
    is: /^53300$/,
    says: ({ where, message }) =>
      `The database at ${where} has run out of connections (${message}). Raise the limit, run fewer workers, lower HOLDFAST_POOL_SIZE, or put a connection pooler in front.`,
  },
  {
    code: 'database_overloaded',
    is: /^timeout exceeded when trying to connect$/,
    says: ({ where, connectMs }) =>
      `All connections of this process to the database at ${where} were busy for ${connectMs / 1000} s. Raise HOLDFAST_POOL_SIZE, or reduce the concurrency.`,
  },
  {
    code: 'database_full',
    is: /^53100$/,
    says: ({ where, message }) =>
      `The disk of the database server at ${where} is full (${message}). Free space on the volume that holds its data directory or its tablespace. Nothing that was committed is lost, and work continues as soon as there is space.`,
  },
  {
    code: 'database_overloaded',
    is: /^53/,
    says: ({ where, message, code }) =>
      code === '53200'
        ? `The database server at ${where} ran out of memory (${message}). The statement had no effect. Give the server more memory, or lower work_mem or max_connections; for shared memory, raise max_locks_per_transaction.`
        : `The database server at ${where} reached a limit (${message}). The statement had no effect.`,
  },
  {
    code: 'database_failed',
    is: /^(58|XX)/,
    says: ({ where, message, code }) =>
      `The database server at ${where} reported an internal error (${code}: ${message}). Check its log and its disk.`,
  },
  {
    code: 'database_refused',
    is: /client password must be a (non-empty )?string/,
    says: ({ where }) =>
      `The database at ${where} requires a password, but the URL has none. Write it as postgres://user:password@host/database, or set PGPASSWORD.`,
  },
  {
    code: 'database_refused',
    is: /^28P01$/,
    says: ({ where, message }) =>
      `The database at ${where} rejected the password (${message}). Check user and password in the URL; special characters must be percent-encoded.`,
  },
  {
    code: 'database_refused',
    is: /^28000$/,
    says: ({ where, message }) =>
      `The database at ${where} does not accept connections from this user (${message}). ${admission(message)}`,
  },
  {
    code: 'database_refused',
    is: /^3D000$/,
    says: ({ where, message }) =>
      `The server at ${where} has no ${/database ".*"/.exec(message)?.[0] ?? 'database of that name'}. Check the name in the URL, or create it with createdb.`,
  },
  {
    code: 'database_refused',
    is: /^The server does not support SSL connections$/,
    says: ({ where }) =>
      `The database at ${where} does not support TLS, but the URL requires it. Turn ssl on in the server, or remove sslmode from the URL.`,
  },
  {
    code: 'database_refused',
    is: /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|HOSTNAME_MISMATCH/,
    says: ({ where, message }) =>
      `The TLS certificate of the database at ${where} is not trusted (${message}). Set sslrootcert=<file> in the URL to the certificate of its CA, and check that the host name matches.`,
  },
  {
    code: 'database_refused',
    is: /^(EPROTO|ERR_SSL|ERR_TLS|ERR_OSSL)|establishing an SSL connection/,
    says: ({ where, message }) =>
      `Could not make a TLS connection to the database at ${where} (${message}). Check that Postgres listens on that port, and check the TLS parameters of the URL.`,
  },
  {
    code: 'database_refused',
    is: /requires specifying a CA with sslrootcert/,
    says: ({ where }) =>
      `The URL ${where} has sslmode=verify-ca without sslrootcert. Add sslrootcert=<file>, or use sslmode=verify-full.`,
  },
  {
    code: 'database_forbidden',
    is: /^42501$/,
    says: ({ where, message }) =>
      `The database at ${where} does not allow this user to do that (${message}). Grant the user the privilege, or connect as the owner of the schema holdfast; \`holdfast migrate\` needs the owner.`,
  },
  {
    code: 'schema_missing',
    is: /^(42P01|3F000)$/,
    says: ({ where, message }) =>
      `The database at ${where} has no Holdfast schema, or an incomplete one (${message}). Run \`holdfast migrate\`.`,
  },
  {
    code: 'database_unreachable',
    is: /^57P0[34]$/,
    says: ({ where, message }) =>
      `The database at ${where} is not accepting connections (${message}). Try again once it is up.`,
  },
  {
    code: 'database_unreachable',
    is: /^(57P0|08)/,
    says: ({ where, message }) => `The database at ${where} closed the connection (${message}).`,
  },
  {
    code: 'database_unreachable',
    is: /^ECONNREFUSED$/,
    says: ({ where, message }) =>
      `Nothing is listening at ${where} (${message}). Start Postgres there, or correct the host and port in the URL.`,
  },
  {
    code: 'database_unreachable',
    is: /^(ENOTFOUND|EAI_AGAIN)$/,
    says: ({ where, message }) =>
      `The host name of the database at ${where} cannot be resolved (${message}). Check the host in the URL, and the DNS of this machine.`,
  },
  {
    code: 'database_unreachable',
    is: /^ETIMEDOUT$|timeout expired|connection timeout/,
    says: ({ where, connectMs }) =>
      `The database at ${where} did not answer within ${connectMs / 1000} s. Check that Postgres listens on this host and port, and that no firewall drops the connection.`,
  },
]

/** An error of the database, or of the connection to it, as one that says what happened and what to do. Any other error is returned as it is. */
export function describe(error: unknown, url: string, connectMs: number = connectTimeoutMs(url)): unknown {
  if (error instanceof HoldfastError) return error
  const failure = failureOf(error, url, connectMs)
  const told = (code: ErrorCode, sentence: string) => new HoldfastError(code, sentence, { cause: error })
  if (failure.path !== undefined && /^E[A-Z]+$/.test(failure.code))
    return told(
      'database_refused',
      `The file ${failure.path}, which the database URL ${failure.where} names for TLS, cannot be read (${failure.message}).`,
    )
  // what a trigger was told by another database says nothing about this one
  if (/^(08|57P0|53300)/.test(failure.code) && !isConnectionError(error)) return error
  const known = explanations.find(({ is }) => is.test(failure.code))
  if (known) return told(known.code, known.says(failure))
  if (!isConnectionError(error)) return error
  return told(
    'database_unreachable',
    `The connection to the database at ${failure.where} was lost or could not be established (${failure.message}).`,
  )
}

function failureOf(error: unknown, url: string, connectMs: number): Failure {
  const { code, message } = details(error)
  const { path, syscall } = (error ?? {}) as { path?: unknown; syscall?: unknown }
  return {
    code: code ?? message,
    message: message || String(code),
    // an error about a Unix socket has a path too
    path: typeof path === 'string' && syscall === 'open' ? path : undefined,
    connectMs,
    where: withoutPassword(url),
  }
}

/** What to do about a user whom the server refused. */
function admission(message: string): string {
  if (/no encryption|SSL off/.test(message))
    return 'It may accept TLS only: add sslmode=verify-full to the URL. If not, allow this address in pg_hba.conf.'
  if (/pg_hba/.test(message)) return 'Allow this user, database and address in pg_hba.conf.'
  return 'Create the role with LOGIN, or correct the user in the URL.'
}
