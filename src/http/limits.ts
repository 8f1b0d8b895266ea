import { HoldfastError } from '../errors/errors.ts'
import type { Caller } from './caller.ts'

/** What one key may ask of one server. */
export interface Limits {
  /** Counts a request. Throws rate_limited. */
  take(caller: Caller): void
  /** Counts a request that waits, until the answer is called. Throws waits_exhausted. */
  wait(caller: Caller): () => void
  waiting(): number
}

interface Bucket {
  tokens: number
  atMs: number
}

const mostBuckets = 10_000

/** Makes the limits: so many requests a second with a burst of twice that, and so many that wait. */
export function makeLimits({ perSecond, waits }: { perSecond: number; waits: number }): Limits {
  const buckets = new Map<string | null, Bucket>()
  const open = new Map<string | null, number>()
  const burst = 2 * perSecond

  return {
    take({ keyId }) {
      const nowMs = performance.now()
      if (buckets.size > mostBuckets) buckets.clear()
      const bucket = buckets.get(keyId) ?? { tokens: burst, atMs: nowMs }
      buckets.set(keyId, bucket)
      bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1000)
      bucket.atMs = nowMs
      if (bucket.tokens < 1)
        throw new HoldfastError(
          'rate_limited',
          `More than ${perSecond} requests a second with this key; slow down, or submit many at once.`,
          {
            details: { retryAfterMs: Math.ceil(((1 - bucket.tokens) * 1000) / perSecond) },
          },
        )
      bucket.tokens -= 1
    },
    wait({ keyId }) {
      const count = open.get(keyId) ?? 0
      if (count >= waits)
        throw new HoldfastError(
          'waits_exhausted',
          `${waits} requests of this key wait already; wait for one of them to end.`,
          {
            details: { retryAfterMs: 1_000 },
          },
        )
      open.set(keyId, count + 1)
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        const left = (open.get(keyId) ?? 1) - 1
        if (left > 0) open.set(keyId, left)
        else open.delete(keyId)
      }
    },
    waiting: () => [...open.values()].reduce((sum, count) => sum + count, 0),
  }
}
