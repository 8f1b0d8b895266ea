import { HoldfastError } from '../errors/errors.ts'
import { Buckets } from './buckets.ts'
import { accountOf, type Caller } from './caller.ts'

/** What one tenant, or one key for all tenants, may ask of one server. All keys of a tenant count together, since it can make as many as it likes. */
export interface Limits {
  /** Counts a request. Throws rate_limited. */
  take(caller: Caller): void
  /** Counts a request that waits, until the answer is called. Throws waits_exhausted. */
  wait(caller: Caller): () => void
  /** Counts the bytes of a large body, until the answer is called. Throws rate_limited. */
  holdBody(caller: Caller, bytes: number): () => void
  waiting(): number
}

const mostAccounts = 10_000

/** Makes the limits: so many requests a second with a burst of twice that, so many that wait, and so many bytes of large bodies. */
export function makeLimits(most: { perSecond: number; waits: number; bodyBytes: number }): Limits {
  const { perSecond, waits, bodyBytes } = most
  const requests = new Buckets<string>({ perSecond, burst: 2 * perSecond, most: mostAccounts })
  const open = new Map<string, number>()
  const bodies = new Map<string, number>()

  return {
    take(caller) {
      const retryAfterMs = requests.take(accountOf(caller))
      if (retryAfterMs > 0)
        throw new HoldfastError(
          'rate_limited',
          `${nameOf(caller)} makes more than ${perSecond} requests a second (setting httpRate); slow down, or submit many at once.`,
          { details: { retryAfterMs } },
        )
    },
    wait(caller) {
      const owner = accountOf(caller)
      const count = open.get(owner) ?? 0
      if (count >= waits)
        throw new HoldfastError(
          'waits_exhausted',
          `${nameOf(caller)} has ${waits} requests waiting already (setting httpWaits); wait for one of them to end.`,
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

function nameOf({ tenant }: Caller): string {
  return tenant === null ? 'This key' : `The tenant ${tenant}`
}
