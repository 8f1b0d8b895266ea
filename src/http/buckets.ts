interface Bucket {
  tokens: number
  atMs: number
}

/** A token bucket for each of many ids: a steady rate per second, and short bursts. */
export class Buckets<Id> {
  readonly #perSecond: number
  readonly #burst: number
  readonly #most: number
  readonly #buckets = new Map<Id, Bucket>()

  constructor({ perSecond, burst, most }: { perSecond: number; burst: number; most: number }) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#most = most
  }

  /** Takes one token. Returns 0, or if none is left, the milliseconds until there is one. */
  take(id: Id): number {
    const bucket = this.#bucketOf(id)
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * 1000) / this.#perSecond)
    bucket.tokens -= 1
    return 0
  }

  /** Gives back a token that should not have been taken. */
  giveBack(id: Id): void {
    const bucket = this.#buckets.get(id)
    if (bucket) bucket.tokens = Math.min(this.#burst, bucket.tokens + 1)
  }

  #bucketOf(id: Id): Bucket {
    const nowMs = performance.now()
    const bucket = this.#buckets.get(id) ?? { tokens: this.#burst, atMs: nowMs }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((nowMs - bucket.atMs) * this.#perSecond) / 1000)
    bucket.atMs = nowMs
    // in order of last use, so that the least recently used bucket is dropped first
    this.#buckets.delete(id)
    this.#buckets.set(id, bucket)
    if (this.#buckets.size > this.#most) this.#buckets.delete(this.#buckets.keys().next().value as Id)
    return bucket
  }
}
