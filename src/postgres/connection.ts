import type { Socket } from 'node:net'
import pg from 'pg'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'

/** The options of all our connections. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: checkedUrl(url),
    application_name: 'holdfast',
    connectionTimeoutMillis: connectTimeoutMs(url),
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    types: types as pg.CustomTypesConfig,
  }
}

interface Starting {
  getStartupConf(): Record<string, string>
}
const { getStartupConf } = pg.Client.prototype as unknown as Starting

/**
 * One of our connections. It asks for the date style that `pg` can parse: the server, the database or the role may have another default, and
 * then `pg` would parse no date at all. Poolers accept this startup parameter, and no other that we would need.
 */
export class Client extends pg.Client {
  getStartupConf(): Record<string, string> {
    return { ...getStartupConf.call(this), DateStyle: 'ISO' }
  }
}

const defaultConnectTimeoutMs = 10_000

/** How long connecting may take: `connect_timeout` of the URL, in seconds like in libpq, or 10 s. */
export function connectTimeoutMs(url: string): number {
  const seconds = URL.canParse(url) ? Number(new URL(url).searchParams.get('connect_timeout')) : 0
  return seconds > 0 ? seconds * 1000 : defaultConnectTimeoutMs
}

// int8 as a number: our sequences and counts stay far below 2^53
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === 20 ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** Drops a connection at once, whether or not the server still answers, so that the server releases its locks. */
export function drop(client: pg.Client): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  stream.destroy()
}

/** The URL, if it is valid for a Postgres server; throws otherwise. */
export function checkedUrl(url: string): string {
  let parsed: URL | undefined
  try {
    parsed = new URL(url)
  } catch {}
  // an unencoded / or ? in a password ends the host there: the rest of the password would become the database name, and would be shown
  const isCut = parsed !== undefined && parsed.username === '' && /@/.test(parsed.pathname)
  if (parsed && !isCut && /^postgres(ql)?:$/.test(parsed.protocol)) return url
  throw new HoldfastError(
    'config_invalid',
    `The database URL ${JSON.stringify(withoutPassword(url))} is not a Postgres URL. Write it as postgres://user:password@host:5432/database, with special characters percent-encoded.`,
  )
}

const brokenWires = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
])
const brokenWords =
  /Connection terminated|connection timeout|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|not queryable|Client was closed/i

/** Errors of connections that never came about. A server has many codes for refusing one: a full disk, an expired password. */
const keptOut = new WeakSet<object>()

/** Notes that this error is about connecting, so that no statement is blamed for it. */
export function noteKeptOut(error: unknown): void {
  if (typeof error === 'object' && error !== null) keptOut.add(error)
}

/** Whether the connection broke, so that it is unknown whether the statement took effect, or could not be established. */
export function isConnectionError(error: unknown): boolean {
  const cause = error instanceof HoldfastError && error.cause !== undefined ? error.cause : error
  if (typeof cause === 'object' && cause !== null && keptOut.has(cause)) return true
  const { code, message } = details(error)
  if (code === undefined) return brokenWords.test(message)
  // 25006: the server became a replica; 25P03: one of our transactions was idle for too long
  if (brokenWires.has(code) || /^(25006|25P03)$/.test(code)) return true
  // 08: connection exceptions; 57P01–05: the server stops, starts or ends the connection; 53300: it has no connections left; 58: its disk
  return /^(08|57P0|53300|58)/.test(code) && !isOnlyStatement(error)
}

/** What Postgres calls a failed statement in its languages. Any other severity can mean that it ended the connection. */
const failedStatement = new Set(
  'ERROR CHYBA FEHLER ΣΦΑΛΜΑ ERREUR ERRORE エラー შეცდომა 오류 BŁĄD ERRO ОШИБКА FEL HATA ПОМИЛКА LỖI 错误 錯誤'.split(
    ' ',
  ),
)

/**
 * Whether Postgres itself says that only a statement failed, and the connection goes on. One row can cause that with any code: a trigger that
 * asks another database passes on what happens there, and one block of a table may be unreadable. A pooler names no routine, and may report
 * a broken connection in the same way.
 */
function isOnlyStatement(error: unknown): boolean {
  const { severity, routine } = (rootOf(error) ?? {}) as { severity?: unknown; routine?: unknown }
  return typeof routine === 'string' && typeof severity === 'string' && failedStatement.has(severity)
}

/** Whether the same statement can simply be run again: the server rolled it back in favor of another one. */
export function isRetryable(error: unknown): boolean {
  return /^40(001|P01)$/.test(details(error).code ?? '')
}

/** Whether the server ended the connection because it was idle for too long: it has not read the statement that was sent in the meantime. */
export function wasIdle(error: unknown): boolean {
  return details(error).code === '57P05'
}

/** Whether the statement was cancelled, by a timeout of the server or by a request. */
export function isCancelled(error: unknown): boolean {
  return details(error).code === '57014'
}

/** Whether the statement did not get a lock that another transaction holds, within the time that it may wait for one. */
export function isLocked(error: unknown): boolean {
  return details(error).code === '55P03'
}

/** Whether the server ended the transaction for its length, together with its connection: the effect of `transaction_timeout`. */
export function isOvertime(error: unknown): boolean {
  return details(error).code === '25P04'
}

/** Whether the statement ran out of time, or did not get a lock that another transaction holds. */
export function isHeldUp(error: unknown): boolean {
  return isRetryable(error) || isLocked(error) || isCancelled(error) || isOvertime(error)
}

/** Whether an insert violated this unique constraint. */
export function isTaken(error: unknown, constraint: string): boolean {
  const cause = error instanceof HoldfastError ? error.cause : error
  return details(error).code === '23505' && (cause as { constraint?: unknown } | null)?.constraint === constraint
}

/** Whether the backend doesn't know a prepared name, or knows it for another statement: the effect of a transaction pooler. */
export function isLostName(error: unknown): boolean {
  return /^(26000|42P05)$/.test(details(error).code ?? '')
}

/** Whether an error is temporary and not the statement's fault: the connection broke, or the server lacks a lock, time, space or memory. */
export function isPassing(error: unknown): boolean {
  return isNobodysFault(error) || isHeldUp(error)
}

/** Whether no statement and no row can be to blame: the connection broke or was refused, or the server lacks space or memory. */
export function isNobodysFault(error: unknown): boolean {
  return isConnectionError(error) || isOutOfResources(error)
}

/** Whether the server lacks space, memory or the like. Not a limit for one statement (53400), or another database without connections (53300). */
function isOutOfResources(error: unknown): boolean {
  return /^53(?!300|400)/.test(details(error).code ?? '')
}

/** Whether the server could not read or write one of its files: that of one row, or all of them. */
export function isFileError(error: unknown): boolean {
  return /^58/.test(details(error).code ?? '')
}

/** The code and message of an error, or of the database error that caused it. */
export function details(error: unknown): { code: string | undefined; message: string } {
  const root = rootOf(error)
  const code = (root as { code?: unknown } | null)?.code
  return { code: typeof code === 'string' ? code : undefined, message: messageOf(root) }
}

function rootOf(error: unknown): unknown {
  if (error instanceof HoldfastError && error.cause !== undefined) return rootOf(error.cause)
  return error instanceof AggregateError ? error.errors[0] : error
}
