import type { Socket } from 'node:net'
import pg from 'pg'
import { HoldfastError, messageOf } from '../errors/errors.ts'

/** How every connection of ours is made. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: checkedUrl(url),
    application_name: 'holdfast',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    types: types as pg.CustomTypesConfig,
  }
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
  if (parsed && /^postgres(ql)?:$/.test(parsed.protocol)) return url
  throw new HoldfastError(
    'database_unreachable',
    `The database URL ${JSON.stringify(withoutPassword(url))} is not one of Postgres; it should look like postgres://user:password@host:5432/database.`,
  )
}

/** The URL as it may be shown. */
export function withoutPassword(url: string): string {
  return url.replace(/(:\/\/[^:/@]*):[^@]*@/, '$1:***@')
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
  /Connection terminated|connection timeout|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|not queryable|Client was closed/i

/** Whether an error says that the connection broke, so that nobody knows whether the statement was carried out. */
export function isConnectionError(error: unknown): boolean {
  const { code, message } = details(error)
  if (code === undefined) return brokenWords.test(message)
  // 08: connection exceptions; 57P01–03: the server stops or starts; 53300: it has no place left; 25006: it became a replica
  return brokenWires.has(code) || /^(08|57P0|53300|25006)/.test(code)
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

/** Whether an error says nothing against the statement itself: the wire broke, or the server lacks a lock, time, space or memory for a while. */
export function isPassing(error: unknown): boolean {
  return isConnectionError(error) || isHeldUp(error) || isOutOfResources(error)
}

/** Whether the server lacks space, memory or a file: no statement's fault. */
export function isOutOfResources(error: unknown): boolean {
  return /^(53|58)/.test(details(error).code ?? '')
}

function details(error: unknown): { code: string | undefined; message: string } {
  if (error instanceof HoldfastError && error.cause !== undefined) return details(error.cause)
  const nested = error instanceof AggregateError ? error.errors[0] : error
  const code = (nested as { code?: unknown } | null)?.code
  return { code: typeof code === 'string' ? code : undefined, message: messageOf(nested) }
}

const refusals: Record<string, string> = {
  '28P01': 'refuses this user or password',
  '28000': 'refuses this user',
  '3D000': 'has no database of that name; create it first',
  '42501': 'does not allow this user to do that; grant it the rights, or migrate as the owner',
}

/** The error, told as a sentence if it is about reaching the database. */
export function describe(error: unknown, url: string): unknown {
  if (error instanceof HoldfastError) return error
  const { code, message } = details(error)
  const where = withoutPassword(url)
  if (code && refusals[code])
    return new HoldfastError('database_unreachable', `The database at ${where} ${refusals[code]} (${message}).`, {
      cause: error,
    })
  if (code === '42P01' || code === '3F000')
    return new HoldfastError(
      'schema_missing',
      `The database at ${where} has no Holdfast schema, or an incomplete one; run \`holdfast migrate\` (${message}).`,
      { cause: error },
    )
  if (isConnectionError(error))
    return new HoldfastError(
      'database_unreachable',
      `The database at ${where} cannot be reached: ${message || code}. Is it running, and is the address right?`,
      { cause: error },
    )
  return error
}
