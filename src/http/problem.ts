import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { Reply } from './operation.ts'
import { z } from './zod.ts'

/** The shape of every error: an RFC 9457 problem with a stable code. */
export const problemSchema = z
  .object({
    type: z
      .string()
      .openapi({ description: 'A URN that contains the code.', example: 'urn:holdfast:error:job_not_found' }),
    title: z.string().openapi({ description: 'What the code means.' }),
    status: z.number().int(),
    code: z
      .enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]])
      .openapi({ description: 'Stable error code; see the list of error codes.' }),
    detail: z.string().openapi({ description: 'What happened, and what to do.' }),
    requestId: z.string().openapi({ description: 'The X-Request-Id of this request, to find it in the logs.' }),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .openapi({ description: 'More details, depending on the code, such as `issues` for an invalid request.' }),
  })
  .openapi('Problem')

/** Headers that some errors add. */
function headersOf({ code, details }: HoldfastError): Record<string, string> {
  const retryMs = details?.retryAfterMs
  const allow = details?.allow
  return {
    ...(typeof retryMs === 'number' ? { 'retry-after': String(Math.max(1, Math.ceil(retryMs / 1000))) } : {}),
    ...(errorCodes[code].status === 503 ? { 'retry-after': '1' } : {}),
    ...(errorCodes[code].status === 401 ? { 'www-authenticate': 'Bearer realm="holdfast"' } : {}),
    ...(typeof allow === 'string' ? { allow } : {}),
  }
}

/** Codes with a status of 500 or more whose messages are meant for the client. */
const tellable = new Set<ErrorCode>(['not_running', 'result_timeout', 'connections_exhausted'])

/** A problem as JSON. Server errors reveal nothing about internals. */
export function problemText(error: HoldfastError, requestId: string): { status: number; body: string } {
  const { code, details, status } = error
  const isOurs = status >= 500 && !tellable.has(code)
  const problem = {
    type: `urn:holdfast:error:${code}`,
    title: errorCodes[code].meaning,
    status,
    code,
    detail: isOurs ? `${errorCodes[code].meaning} Contact your operator with the request id.` : error.message,
    requestId,
    ...(isOurs || !details ? {} : { details }),
  }
  return { status, body: JSON.stringify(problem) }
}

/** The response to a request that failed. */
export function problemOf(thrown: unknown, requestId: string): Reply {
  const error = thrown instanceof HoldfastError ? thrown : new HoldfastError('internal', '')
  const headers = { 'content-type': 'application/problem+json', ...headersOf(error) }
  return { ...problemText(error, requestId), headers }
}

/** Headers of every response. Responses are data: no page may frame, sniff or run them. */
export const everyAnswer = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** A complete response as text, for a connection without a response object. */
export function problemBytes(error: HoldfastError): string {
  const requestId = randomUUID()
  const { status, headers, body } = problemOf(error, requestId)
  const all = {
    ...headers,
    'content-length': String(Buffer.byteLength(body as string)),
    connection: 'close',
    'x-request-id': requestId,
    ...everyAnswer,
  }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`
}
