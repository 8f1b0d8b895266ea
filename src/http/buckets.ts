interface Bucket {
  tokens: number
  atMs: number
}

/** Counts what each of many may do: so many a second, and for a moment as many as the burst. */
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

  /** Takes one. Answers 0, or if nothing is left, in how many milliseconds there will be one. */
  take(id: Id): number {
    const bucket = this.#bucketOf(id)
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * 1000) / this.#perSecond)
    bucket.tokens -= 1
    return 0
  }

  /** Gives back one that should not have counted. */
  giveBack(id: Id): void {
    const bucket = this.#buckets.get(id)
    if (bucket) bucket.tokens = Math.min(this.#burst, bucket.tokens + 1)
  }

  #bucketOf(id: Id): Bucket {
    const nowMs = performance.now()
    const bucket = this.#buckets.get(id) ?? { tokens: this.#burst, atMs: nowMs }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((nowMs - bucket.atMs) * this.#perSecond) / 1000)
    bucket.atMs = nowMs
    // the one that was used last stands last, so that whoever has not come for the longest is forgotten first
    this.#buckets.delete(id)
    this.#buckets.set(id, bucket)
    if (this.#buckets.size > this.#most) this.#buckets.delete(this.#buckets.keys().next().value as Id)
    return bucket
  }
}
