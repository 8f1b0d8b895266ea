const delays = { leastMs: 60_000, mostMs: 15 * 60_000 }
const mostKnown = 10_000

/** Deliveries that a sender leaves alone for a while, longer each time. Only this process knows them: their rows can't be changed. */
export class SkippedDeliveries {
  readonly #known = new Map<string, { untilMs: number; times: number }>()

  add(ids: readonly string[], nowMs: number): void {
    for (const id of ids) {
      const times = (this.#known.get(id)?.times ?? 0) + 1
      // the most recent goes to the end of the map
      this.#known.delete(id)
      this.#known.set(id, { untilMs: nowMs + Math.min(delays.mostMs, delays.leastMs * 2 ** (times - 1)), times })
    }
    this.#forgetSome(nowMs)
  }

  /** Those to skip at a time. */
  at(nowMs: number): string[] {
    return [...this.#known].filter(([, { untilMs }]) => untilMs > nowMs).map(([id]) => id)
  }

  /** Forgets those that were tried again without coming back, and the oldest of too many. */
  #forgetSome(nowMs: number): void {
    for (const [id, { untilMs }] of this.#known)
      if (this.#known.size > mostKnown || untilMs + delays.mostMs < nowMs) this.#known.delete(id)
  }
}
