import type { Socket } from 'node:net'
import pg from 'pg'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'

/** How every connection of ours is made. */
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

const defaultConnectTimeoutMs = 10_000

/** How long a connection may take to be made: `connect_timeout` of the URL, in seconds as libpq has it, or 10 s. */
export function connectTimeoutMs(url: string): number {
  const seconds = URL.canParse(url) ? Number(new URL(url).searchParams.get('connect_timeout')) : 0
  return seconds > 0 ? seconds * 1000 : defaultConnectTimeoutMs
}

// int8 as a number: our sequences and counts stay far below 2^53
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === 20 ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** Drops a connection at once, whether or not the other side still answers, so that the server lets go of its locks. */
export function drop(client: pg.Client): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  stream.destroy()
}

/** The URL, if it can be one of a Postgres server. */
export function checkedUrl(url: string): string {
  let parsed: URL | undefined
  try {
    parsed = new URL(url)
  } catch {}
  // an unencoded / or ? in a password ends the host there: what is left of the password would be the database, and would be shown
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

/** Whether an error says that the connection broke, so that nobody knows whether the statement was carried out. */
export function isConnectionError(error: unknown): boolean {
  const { code, message } = details(error)
  if (code === undefined) return brokenWords.test(message)
  // 08: connection exceptions; 57P01–03: the server stops or starts; 53300: it has no place left; 25006: it became a replica;
  // 25P03: a transaction of ours fell silent
  return brokenWires.has(code) || /^(08|57P0|53300|25006|25P03)/.test(code)
}

/** Whether the same statement can simply be run again: the server undid it to let another one through. */
export function isRetryable(error: unknown): boolean {
  return /^40(001|P01)$/.test(details(error).code ?? '')
}

/** Whether the server was told to stop the statement, by its own limit or by whoever waited for it. */
export function isCancelled(error: unknown): boolean {
  return details(error).code === '57014'
}

/** Whether the statement did not get what it needed in time: a lock that another transaction holds, or the time to end. */
export function isHeldUp(error: unknown): boolean {
  return isRetryable(error) || /^(55P03|57014)$/.test(details(error).code ?? '')
}

/** Whether a row is in the way that has the id of one to be inserted into that table. */
export function isTaken(error: unknown, constraint: string): boolean {
  const cause = error instanceof HoldfastError ? error.cause : error
  return details(error).code === '23505' && (cause as { constraint?: unknown } | null)?.constraint === constraint
}

/** Whether a prepared name is unknown to the backend, or was given there by somebody else: what a transaction pooler does to names. */
export function isLostName(error: unknown): boolean {
  return /^(26000|42P05)$/.test(details(error).code ?? '')
}

/** Whether an error says nothing against the statement itself: the wire broke, or the server lacks a lock, time, space or memory for a while. */
export function isPassing(error: unknown): boolean {
  return isConnectionError(error) || isHeldUp(error) || isOutOfResources(error)
}

/** Whether the server lacks space, memory or a file: no statement's fault. */
export function isOutOfResources(error: unknown): boolean {
  return /^(53|58)/.test(details(error).code ?? '')
}

/** What an error says beneath our own words: its code and its message. */
export function details(error: unknown): { code: string | undefined; message: string } {
  if (error instanceof HoldfastError && error.cause !== undefined) return details(error.cause)
  const nested = error instanceof AggregateError ? error.errors[0] : error
  const code = (nested as { code?: unknown } | null)?.code
  return { code: typeof code === 'string' ? code : undefined, message: messageOf(nested) }
}
