const longestRestMs = 50

/**
 * Limits how much work runs at once: `most` in total and `each` per owner, and owners take turns. Work that occupies a database connection for
 * long goes through here, so that one tenant can't take all of them. While `rests` is true, an owner pauses after each piece of work for as long
 * as it took, so that half of the time is left to others.
 */
export class FairGate {
  readonly #most: number
  readonly #each: number
  readonly #rests: () => boolean
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #inside = new Map<string, number>()
  #count = 0

  constructor(most: number, { each = 1, rests = () => false }: { each?: number; rests?: () => boolean } = {}) {
    this.#most = most
    this.#each = each
    this.#rests = rests
  }

  /** Runs the work when it is its owner's turn. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    await this.#enter(owner)
    const sinceMs = performance.now()
    try {
      return await work()
    } finally {
      this.#count -= 1
      if (this.#rests()) setTimeout(() => this.#leave(owner), Math.min(longestRestMs, performance.now() - sinceMs))
      else this.#leave(owner)
      this.#letIn()
    }
  }

  #enter(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const queue = this.#waiting.get(owner)
      if (queue) queue.push(resolve)
      else this.#waiting.set(owner, [resolve])
      this.#letIn()
    })
  }

  #leave(owner: string): void {
    const left = (this.#inside.get(owner) ?? 1) - 1
    if (left > 0) this.#inside.set(owner, left)
    else this.#inside.delete(owner)
    this.#letIn()
  }

  #letIn(): void {
    for (const [owner, queue] of [...this.#waiting]) {
      if (this.#count >= this.#most) return
      const own = this.#inside.get(owner) ?? 0
      if (own >= this.#each) continue
      this.#inside.set(owner, own + 1)
      this.#count += 1
      // to the back of the line
      this.#waiting.delete(owner)
      queue.shift()?.()
      if (queue.length > 0) this.#waiting.set(owner, queue)
    }
  }
}
