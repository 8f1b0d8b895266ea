/**
 * When to look for whom. What is new is looked for at once, then ever more rarely: a short job is answered quickly, and a long one costs little.
 * Each interval has a lane of its own, so a lane is in the order of its due times, and neither adding nor taking depends on how many wait.
 */
export class LookSchedule<T> {
  readonly #urgent = new Map<T, number>()
  readonly #lanes = intervalsMs.map(() => new Map<T, number>())
  /** The lane that each is in: looking through all of them for one would be dear with tens of thousands of waits. */
  readonly #laneOf = new Map<T, Map<T, number>>()
  #isReversed = false

  /** To be looked for at once. */
  hurry(one: T): void {
    this.#put(one, this.#urgent, Number.NEGATIVE_INFINITY)
  }

  /** To be looked for again, after so many looks. */
  add(one: T, looks: number, nowMs: number): void {
    const at = Math.max(0, Math.min(looks, intervalsMs.length) - 1)
    this.#put(one, this.#lanes[at] as Map<T, number>, nowMs + (intervalsMs[at] as number))
  }

  delete(one: T): void {
    this.#laneOf.get(one)?.delete(one)
    this.#laneOf.delete(one)
  }

  /** Takes out those that are due, up to so many: all of them, or only those that are urgent. */
  take(most: number, nowMs: number, which: 'all' | 'urgent' = 'all'): T[] {
    const taken: T[] = []
    // a flood of newcomers must not keep those who wait for long from their turn, nor the other way round
    this.#isReversed = !this.#isReversed
    const lanes = this.#isReversed ? this.#lanes.toReversed() : this.#lanes
    for (const lane of which === 'all' ? [this.#urgent, ...lanes] : [this.#urgent])
      for (const [one, dueMs] of lane) {
        if (dueMs > nowMs) break
        if (taken.length === most) return taken
        this.delete(one)
        taken.push(one)
      }
    return taken
  }

  get hasUrgent(): boolean {
    return this.#urgent.size > 0
  }

  /** When the next one is due; far away if there is none. */
  nextDueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const lane of [this.#urgent, ...this.#lanes]) {
      const first = lane.values().next()
      if (!first.done) dueMs = Math.min(dueMs, first.value)
    }
    return dueMs
  }

  #put(one: T, lane: Map<T, number>, dueMs: number): void {
    this.#laneOf.get(one)?.delete(one)
    this.#laneOf.set(one, lane)
    lane.set(one, dueMs)
  }
}

/** From 2 ms to half a second, each a quarter longer than the one before. */
const intervalsMs = Array.from({ length: 26 }, (_, index) => Math.min(500, 2 * 1.25 ** index))
