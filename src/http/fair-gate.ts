/**
 * Lets in so much work at once, one piece per owner, and the owners in turns. What takes a connection for long goes through here, so that one tenant can't hold
 * all of them.
 */
export class FairGate {
  readonly #most: number
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #inside = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  /** Does the work when it is its owner's turn. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    await this.#enter(owner)
    try {
      return await work()
    } finally {
      this.#inside.delete(owner)
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

  #letIn(): void {
    for (const [owner, queue] of [...this.#waiting]) {
      if (this.#inside.size >= this.#most) return
      if (this.#inside.has(owner)) continue
      this.#inside.add(owner)
      // to the back: the others have their turns first
      this.#waiting.delete(owner)
      queue.shift()?.()
      if (queue.length > 0) this.#waiting.set(owner, queue)
    }
  }
}
