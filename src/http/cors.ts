import type { Reply } from './operation.ts'
import type { HttpRequest } from './request.ts'

/** The headers that a page of another site may read from a response, and may send. */
const exposed = 'location, link, etag, x-request-id, traceparent, retry-after, idempotent-replayed, preference-applied'
const sendable =
  'authorization, content-type, idempotency-key, prefer, if-none-match, last-event-id, traceparent, x-request-id'

/** Tells browsers which origins may use the API besides its own. */
export function corsOf(origins: readonly string[]): (request: HttpRequest, reply: Reply) => Reply {
  if (origins.length === 0) return (_, reply) => reply
  return (request, reply) => {
    const origin = request.headers.get('origin')
    if (origin === null || !origins.includes(origin)) return reply
    const common = { 'access-control-allow-origin': origin, vary: varyOf(reply) }
    const isPreflight = request.method === 'OPTIONS' && request.headers.get('access-control-request-method') !== null
    if (!isPreflight)
      return { ...reply, headers: { ...reply.headers, ...common, 'access-control-expose-headers': exposed } }
    const allowed = {
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
      'access-control-allow-headers': sendable,
      'access-control-max-age': '600',
    }
    return { status: 204, headers: { ...reply.headers, ...common, ...allowed }, body: null }
  }
}

function varyOf({ headers }: Reply): string {
  return headers.vary === undefined ? 'origin' : `${headers.vary}, origin`
}
