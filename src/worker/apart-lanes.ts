import { keyOf, type Lane } from './lanes.ts'

/** The least time between two claims of a lane in which claims fail. */
const leastRestMs = 1_000
/** Claims of such lanes, with the search for the jobs to blame, may take at most one part in this many of the time. */
const share = 10

/**
 * Lanes in which more jobs can't be claimed than one search finds. A claim that covers them fails as a whole, so each is
 * claimed apart from all others, now and then, until that succeeds.
 */
export class ApartLanes {
  /** When to claim each of them again, and how often that has failed. */
  readonly #lanes = new Map<string, { dueMs: number; failures: number }>()

  /** Those of the lanes that one claim can cover. */
  together(lanes: Lane[]): Lane[] {
    return this.#lanes.size === 0 ? lanes : lanes.filter((lane) => !this.#lanes.has(keyOf(lane)))
  }

  /** The lane that it is time to claim; undefined if there is none. */
  next(lanes: Lane[], nowMs: number): Lane | undefined {
    if (this.#lanes.size === 0) return undefined
    const dueMs = (lane: Lane) => this.#lanes.get(keyOf(lane))?.dueMs ?? Number.POSITIVE_INFINITY
    return lanes.filter((lane) => dueMs(lane) <= nowMs).toSorted((a, b) => dueMs(a) - dueMs(b))[0]
  }

  /** Claims of these lanes fail, and finding that out took so long. */
  add(lanes: readonly Lane[], { nowMs, tookMs }: { nowMs: number; tookMs: number }): void {
    for (const lane of lanes) {
      const failures = this.failuresOf(lane) + (tookMs > 0 ? 1 : 0)
      this.#lanes.set(keyOf(lane), { dueMs: nowMs + Math.max(leastRestMs, share * tookMs), failures })
    }
  }

  /** How often claims of this lane have failed since it is claimed apart. */
  failuresOf(lane: Lane): number {
    return this.#lanes.get(keyOf(lane))?.failures ?? 0
  }

  /** A claim of this lane succeeded. */
  remove(lane: Lane): void {
    this.#lanes.delete(keyOf(lane))
  }
}
