import { HoldfastError } from '../errors/errors.ts'
import { Buckets } from './buckets.ts'
import { accountOf, type Caller } from './caller.ts'

/** What one key may ask of one server. */
export interface Limits {
  /** Counts a request. Throws rate_limited. */
  take(caller: Caller): void
  /** Counts a request that waits, until the answer is called. Throws waits_exhausted. */
  wait(caller: Caller): () => void
  /** Counts the bytes of a large body, until the answer is called. Throws rate_limited. */
  holdBody(caller: Caller, bytes: number): () => void
  waiting(): number
}

const mostKeys = 10_000

/** Makes the limits: so many requests a second with a burst of twice that, so many that wait, and so many bytes of large bodies. */
export function makeLimits(most: { perSecond: number; waits: number; bodyBytes: number }): Limits {
  const { perSecond, waits, bodyBytes } = most
  const requests = new Buckets<string | null>({ perSecond, burst: 2 * perSecond, most: mostKeys })
  const open = new Map<string | null, number>()
  const bodies = new Map<string, number>()

  return {
    take({ keyId }) {
      const retryAfterMs = requests.take(keyId)
      if (retryAfterMs > 0)
        throw new HoldfastError(
          'rate_limited',
          `More than ${perSecond} requests a second with this key; slow down, or submit many at once.`,
          { details: { retryAfterMs } },
        )
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
    holdBody(caller, bytes) {
      const owner = accountOf(caller)
      const held = bodies.get(owner) ?? 0
      if (held > 0 && held + bytes > bodyBytes)
        throw new HoldfastError(
          'rate_limited',
          `Requests with ${held} bytes are under way already, and the limit is ${bodyBytes} (setting httpBodyBytes); send large bodies one after the other.`,
          { details: { retryAfterMs: 1_000 } },
        )
      bodies.set(owner, held + bytes)
      return () => {
        const left = (bodies.get(owner) ?? bytes) - bytes
        if (left > 0) bodies.set(owner, left)
        else bodies.delete(owner)
      }
    },
    waiting: () => [...open.values()].reduce((sum, count) => sum + count, 0),
  }
}
