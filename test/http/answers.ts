import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { errorCodes } from '#holdfast/errors/errors'
import { operations } from '#holdfast/http/operations'
import { problemSchema } from '#holdfast/http/problem'
import type { Spot } from './requests.ts'
import { type Belongings, idsOf, marker } from './two-tenants.ts'
import type { WireAnswer, WireRequest } from './wire.ts'

const ofChecks = [
  'request_invalid',
  'body_malformed',
  'body_too_large',
  'content_type_unsupported',
  'key_missing',
  'key_refused',
]
/** What the router and the parser say, before it is known which operation is meant. */
const ofNobody = ['route_not_found', 'method_not_allowed', 'header_invalid', 'headers_too_large']

/** Whether the operation itself had a say. */
export function isReached({ status, body }: WireAnswer): boolean {
  return status < 400 || ![...ofChecks, ...ofNobody].some((code) => body.includes(`"code":"${code}"`))
}

const stackTrace = /\n {4}at |\\n {4}at |\.[jt]s:\d|node:internal|node_modules/

/** Throws if an answer is none that the operation declares, or tells of our inside. */
export function mustBeDeclared(spots: readonly Spot[], request: WireRequest, answer: WireAnswer): void {
  const { status, text } = answer
  expect(status, text).toBeLessThan(500)
  expect(stackTrace.exec(text)?.[0]).toBeUndefined()
  if (request.method === 'HEAD') return
  const path = pathOf(request)
  const matching = spots.filter(
    (spot) => spot.method === request.method && new RegExp(`^${spot.path.replace(/\{\w+\}/g, '[^/]+')}/?$`).test(path),
  )
  if (status >= 400) mustBeProblem(matching, answer)
  // dots may lead up to a page that is no operation
  else if (path !== '/') mustFit(matching, answer)
}

function mustFit(matching: Spot[], answer: WireAnswer): void {
  const problems = matching.map(({ one }) => {
    const declared = operations.find(({ id }) => id === one.operationId)?.answers[answer.status]
    return declared ? misfitOf(declared, answer) : 'the status is not declared'
  })
  if (problems.includes(null)) return
  throw new Error(`${problems.join('; ') || 'there is no such operation'}: ${answer.status} ${answer.body}`)
}

type Declared = (typeof operations)[number]['answers'][number]

function misfitOf({ schema, type }: Declared, { headers, body }: WireAnswer): string | null {
  if (type) return headers['content-type'] === type ? null : 'it is of another type'
  if (!schema) return body === '' ? null : 'it has a body'
  const given = JSON.parse(body)
  const parsed = schema.safeParse(given)
  if (!parsed.success) return parsed.error.message
  // a schema leaves out what it does not know, so what it gives is the same only if there was nothing else
  return isDeepStrictEqual(parsed.data, given) ? null : 'it tells more than is declared'
}

function mustBeProblem(matching: Spot[], { status, headers, body }: WireAnswer): void {
  expect(headers['content-type']).toBe('application/problem+json')
  const problem = problemSchema.strict().parse(JSON.parse(body))
  expect(problem.status).toBe(status)
  expect(errorCodes[problem.code].status).toBe(status)
  expect(headers['x-request-id']).toBe(problem.requestId)
  if (ofNobody.includes(problem.code)) return
  const told = matching.map(({ one }) => one.responses[status]?.description ?? '')
  expect(told.some((text) => text.includes(`\`${problem.code}\``)) || problem.code, 'the code is documented').toBe(true)
}

function pathOf({ target }: WireRequest): string {
  return URL.canParse(target, 'http://x') ? new URL(target, 'http://x').pathname : target
}

/** What an answer tells of a tenant that the request did not know already. */
export function leaksIn(of: Belongings, request: WireRequest, { text }: WireAnswer): string[] {
  const sent = `${request.target} ${request.body ?? ''} ${request.headers.join(' ')}`.toLowerCase()
  return [marker, ...idsOf(of)].filter((one) => text.includes(one) && !sent.includes(one.toLowerCase()))
}
