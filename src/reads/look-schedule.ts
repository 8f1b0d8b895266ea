/**
 * When to look for which job. A new one is looked for at once, and then less and less often: the result of a short job is returned quickly, and
 * a long job costs little. Each interval has its own lane, so each lane is in the order of due times, and the cost of adding and taking does not
 * depend on the number of waits.
 */
export class LookSchedule<T> {
  readonly #urgent = new Map<T, number>()
  readonly #lanes = intervalsMs.map(() => new Map<T, number>())
  /** The lane of each: searching all lanes would be expensive with tens of thousands of waits. */
  readonly #laneOf = new Map<T, Map<T, number>>()
  #isReversed = false

  /** Schedules a look at once. */
  hurry(one: T): void {
    this.#put(one, this.#urgent, Number.NEGATIVE_INFINITY)
  }

  /** Schedules the next look, after this many looks. */
  add(one: T, looks: number, nowMs: number): void {
    const at = Math.max(0, Math.min(looks, intervalsMs.length) - 1)
    this.#put(one, this.#lanes[at] as Map<T, number>, nowMs + (intervalsMs[at] as number))
  }

  delete(one: T): void {
    this.#laneOf.get(one)?.delete(one)
    this.#laneOf.delete(one)
  }

  /** Takes those that are due, up to `most`: all of them, or only urgent ones. */
  take(most: number, nowMs: number, which: 'all' | 'urgent' = 'all'): T[] {
    const taken: T[] = []
    // a flood of new waits must not delay the old ones, nor the other way round
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

  /** When the next one is due; infinity if there is none. */
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
