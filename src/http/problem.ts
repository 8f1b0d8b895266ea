import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { Reply } from './operation.ts'
import { z } from './zod.ts'

/** What every error looks like: a problem of RFC 9457 with a code that stays the same. */
export const problemSchema = z
  .object({
    type: z.string().openapi({ description: 'A URN made of the code.', example: 'urn:holdfast:error:job_not_found' }),
    title: z.string().openapi({ description: 'What the code means.' }),
    status: z.number().int(),
    code: z
      .enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]])
      .openapi({ description: 'Stable; see the list of error codes.' }),
    detail: z.string().openapi({ description: 'What happened this time, and what to do.' }),
    requestId: z.string().openapi({ description: 'The X-Request-Id of this request, for whoever reads the logs.' }),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .openapi({ description: 'More, by code: `issues` of a request that does not fit, for one.' }),
  })
  .openapi('Problem')

/** Headers that some errors bring along. */
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

/** Codes from 500 on whose messages are meant for the client. */
const tellable = new Set<ErrorCode>(['not_running', 'result_timeout', 'connections_exhausted'])

/** What a problem says, as JSON. What is our own fault says nothing of our inside. */
export function problemText(error: HoldfastError, requestId: string): { status: number; body: string } {
  const { code, details, status } = error
  const isOurs = status >= 500 && !tellable.has(code)
  const problem = {
    type: `urn:holdfast:error:${code}`,
    title: errorCodes[code].meaning,
    status,
    code,
    detail: isOurs ? `${errorCodes[code].meaning} Ask your operator, with the request id.` : error.message,
    requestId,
    ...(isOurs || !details ? {} : { details }),
  }
  return { status, body: JSON.stringify(problem) }
}

/** The answer to a request that went wrong. */
export function problemOf(thrown: unknown, requestId: string): Reply {
  const error = thrown instanceof HoldfastError ? thrown : new HoldfastError('internal', '')
  const headers = { 'content-type': 'application/problem+json', ...headersOf(error) }
  return { ...problemText(error, requestId), headers }
}

/** Answers are data: no page may frame them, sniff at them, run them or keep them. */
export const everyAnswer = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** A whole answer as bytes, for a connection on which there is no response to write to. */
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
