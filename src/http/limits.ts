import { HoldfastError } from '../errors/errors.ts'
import { Buckets } from './buckets.ts'
import { accountOf, type Caller } from './caller.ts'

/** Limits for one tenant, or one key for all tenants, on one server. All keys of a tenant count together, because it can create any number of them. */
export interface Limits {
  /** Counts a request. Throws rate_limited. */
  take(caller: Caller): void
  /** Counts a request that waits, until the returned function is called. Throws waits_exhausted. */
  wait(caller: Caller): () => void
  /** Counts the bytes of a large body, until the returned function is called. Throws rate_limited. */
  holdBody(caller: Caller, bytes: number): () => void
  waiting(): number
  /** The number of requests with large bodies in progress. */
  large(): number
}

const mostAccounts = 10_000

/** Makes limits on requests per second, with a burst of twice that, on waiting requests, and on the bytes of large bodies. */
export function makeLimits(most: { perSecond: number; waits: number; bodyBytes: number }): Limits {
  const { perSecond, waits, bodyBytes } = most
  const requests = new Buckets<string>({ perSecond, burst: 2 * perSecond, most: mostAccounts })
  const open = new Map<string, number>()
  const bodies = new Map<string, number>()
  let large = 0

  return {
    take(caller) {
      const retryAfterMs = requests.take(accountOf(caller))
      if (retryAfterMs > 0)
        throw new HoldfastError(
          'rate_limited',
          `${nameOf(caller)} exceeds ${perSecond} requests per second (setting httpRate); slow down, or submit jobs in batches.`,
          { details: { retryAfterMs } },
        )
    },
    wait(caller) {
      const owner = accountOf(caller)
      const count = open.get(owner) ?? 0
      if (count >= waits)
        throw new HoldfastError(
          'waits_exhausted',
          `${nameOf(caller)} already has ${waits} waiting requests (setting httpWaits); wait for one of them to end.`,
          { details: { retryAfterMs: 1_000 } },
        )
      open.set(owner, count + 1)
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        const left = (open.get(owner) ?? 1) - 1
        if (left > 0) open.set(owner, left)
        else open.delete(owner)
      }
    },
    holdBody(caller, bytes) {
      const owner = accountOf(caller)
      const held = bodies.get(owner) ?? 0
      if (held > 0 && held + bytes > bodyBytes)
        throw new HoldfastError(
          'rate_limited',
          `Requests in progress already hold ${held} bytes, and the limit is ${bodyBytes} (setting httpBodyBytes); send large bodies one at a time.`,
          { details: { retryAfterMs: 1_000 } },
        )
      bodies.set(owner, held + bytes)
      large += 1
      return () => {
        large -= 1
        const left = (bodies.get(owner) ?? bytes) - bytes
        if (left > 0) bodies.set(owner, left)
        else bodies.delete(owner)
      }
    },
    large: () => large,
    waiting: () => [...open.values()].reduce((sum, count) => sum + count, 0),
  }
}

function nameOf({ tenant }: Caller): string {
  return tenant === null ? 'This key' : `The tenant ${tenant}`
}
