/** How long work may run in one turn of the event loop before the rest waits for the next. */
const turnMs = 0.5

/**
 * Limits what runs in one turn of the event loop. Node handles everything that has arrived on all connections at once, so a thousand clients that send
 * at the same time would delay everyone for as long as all of them take. Work beyond half a millisecond waits for later turns, and owners take turns, so
 * that one with few requests overtakes one with many.
 */
export class Turns {
  readonly #waiting = new Map<object, (() => void)[]>()
  #sinceMs = 0
  #hasBegun = false

  /** Whether there is time left in this turn. The first call starts it. */
  hasTime(): boolean {
    if (this.#waiting.size > 0) return false
    return this.#hasBegun ? performance.now() - this.#sinceMs < turnMs : this.#begin()
  }

  /** Runs work in a later turn. Work of one owner keeps its order. */
  add(owner: object, work: () => void): void {
    const own = this.#waiting.get(owner)
    if (own) own.push(work)
    else this.#waiting.set(owner, [work])
    if (!this.#hasBegun) this.#begin()
  }

  #begin(): true {
    this.#sinceMs = performance.now()
    this.#hasBegun = true
    setImmediate(() => this.#end())
    return true
  }

  #end(): void {
    this.#hasBegun = false
    if (this.#waiting.size > 0) this.#begin()
    while (this.#waiting.size > 0 && performance.now() - this.#sinceMs < turnMs) this.#doNext()
  }

  #doNext(): void {
    const [owner, own] = this.#waiting.entries().next().value as [object, (() => void)[]]
    // to the back of the line
    this.#waiting.delete(owner)
    const work = own.shift() as () => void
    if (own.length > 0) this.#waiting.set(owner, own)
    work()
  }
}
