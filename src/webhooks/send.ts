import { messageOf } from '../errors/errors.ts'
import { backoffMs } from '../job/backoff.ts'
import type { ClaimedDelivery } from './claim.sql.ts'
import type { Tried } from './delivery.sql.ts'
import { switchedOff } from './plan.sql.ts'
import type { Poster, PostResult } from './post.ts'
import { requestOf, sendingOf } from './request.ts'
import { beginDelivery, endDelivery } from './span.ts'

/** What sending needs. */
export interface SendParts {
  poster: Poster
  /** The key that secrets are encrypted with. */
  key: Buffer | null
  userAgent: string
  /** The delay after the first failure; it triples with each. */
  backoffBaseMs: number
  observer: { onError(error: unknown): void }
}

/** The time by the database clock: that of the claim, plus the time since. */
export type Clock = () => number

const backoff = { maxMs: 14_400_000, factor: 3 }

/** Sends a delivery once. A failure is an outcome too. */
export async function send(parts: SendParts, row: ClaimedDelivery, clock: Clock, signal: AbortSignal): Promise<Tried> {
  if (row.is_off) return failed(parts, row, 'permanent', switchedOff)
  const sending = sendingOf(row)
  if (typeof sending === 'string') return failed(parts, row, 'permanent', sending)
  const span = beginDelivery(row, sending.url)
  const traced = span ? { ...sending, trace: span.traceparent } : sending
  try {
    const { key, userAgent } = parts
    const post = () => parts.poster.post(requestOf(traced, { key, userAgent, atMs: clock() }), signal)
    const result = await (span ? span.run(post) : post())
    endDelivery(span, result)
    return triedOf(parts, row, result)
  } catch (error) {
    span?.end({ error: messageOf(error) })
    if (signal.aborted) return failed(parts, row, 'released', '')
    // such as a secret that this process can't decrypt: another process may, or this one with another key
    parts.observer.onError(error)
    return failed(parts, row, 'retry', messageOf(error))
  }
}

function triedOf(parts: SendParts, row: ClaimedDelivery, result: PostResult): Tried {
  const { id, tries } = row
  return {
    id,
    tries,
    outcome: result.kind,
    status: result.status ?? null,
    error: result.kind === 'delivered' ? null : result.reason,
    excerpt: result.kind === 'delivered' ? null : (result.excerpt ?? null),
    ms: result.ms,
    delayMs: delayAfter(row, parts),
    leastMs: result.kind === 'retry' ? (result.retryAfterMs ?? 0) : 0,
  }
}

function failed(parts: SendParts, row: ClaimedDelivery, outcome: Tried['outcome'], error: string): Tried {
  const { id, tries } = row
  const delayMs = delayAfter(row, parts)
  return { id, tries, outcome, status: null, error, excerpt: null, ms: null, delayMs, leastMs: 0 }
}

function delayAfter({ failures }: ClaimedDelivery, { backoffBaseMs: baseMs }: SendParts): number {
  return backoffMs(failures + 1, { ...backoff, baseMs })
}
