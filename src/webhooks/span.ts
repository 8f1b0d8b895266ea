import { beginSpan, type Traced } from '../trace/trace.ts'
import type { ClaimedDelivery } from './claim.sql.ts'
import type { PostResult } from './post.ts'

/** Begins the span of one request of a delivery, in the trace of its job; null without a tracer. The path of the URL may be secret, so it is left out. */
export function beginDelivery(row: ClaimedDelivery, url: string): Traced | null {
  return beginSpan(() => ({
    name: `deliver ${row.type}`,
    kind: 'client',
    parent: row.trace,
    attributes: {
      'http.request.method': 'POST',
      'server.address': new URL(url).hostname,
      'holdfast.delivery': row.id,
      'holdfast.event': row.event_id,
      'holdfast.try': row.tries,
      ...(row.job_id !== null && { 'messaging.message.id': row.job_id }),
    },
  }))
}

/** Ends the span of a request with its result. */
export function endDelivery(span: Traced | null, result: PostResult): void {
  span?.end({
    ...(result.status !== undefined && { attributes: { 'http.response.status_code': result.status } }),
    ...(result.kind !== 'delivered' && { error: result.reason }),
  })
}
