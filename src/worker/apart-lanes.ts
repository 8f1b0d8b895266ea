import type { Lane } from './lanes.ts'

/** The least time between two claims of a lane in which claims fail. */
const leastRestMs = 1_000
/** Claims of such lanes, with the search for the jobs to blame, may take at most one part in this many of the time. */
const share = 10

/** What has a name as a lane: a lane, or a kind in its queue. */
export type NamedLane = Pick<Lane, 'queue' | 'kind'>

/**
 * Lanes in which more jobs can't be claimed than one search finds. A claim that covers them fails as a whole, so each is
 * claimed apart from all others, now and then, until that succeeds.
 */
export class ApartLanes<L extends NamedLane> {
  readonly #keyOf: (lane: L) => string
  /** When to claim each of them again. */
  readonly #dueMs = new Map<string, number>()

  /** `keyOf` names a lane, whatever object it is. */
  constructor(keyOf: (lane: L) => string) {
    this.#keyOf = keyOf
  }

  /** Those of the lanes that one claim can cover. */
  together<One extends L>(lanes: One[]): One[] {
    return this.#dueMs.size === 0 ? lanes : lanes.filter((lane) => !this.#dueMs.has(this.#keyOf(lane)))
  }

  /** The lane that it is time to claim; undefined if there is none. */
  next<One extends L>(lanes: One[], nowMs: number): One | undefined {
    if (this.#dueMs.size === 0) return undefined
    const dueMs = (lane: One) => this.#dueMs.get(this.#keyOf(lane)) ?? Number.POSITIVE_INFINITY
    return lanes.filter((lane) => dueMs(lane) <= nowMs).toSorted((a, b) => dueMs(a) - dueMs(b))[0]
  }

  /** Claims of these lanes fail, and finding that out took so long. */
  add(lanes: readonly L[], { nowMs, tookMs }: { nowMs: number; tookMs: number }): void {
    for (const lane of lanes) this.#dueMs.set(this.#keyOf(lane), nowMs + Math.max(leastRestMs, share * tookMs))
  }

  /** A claim of this lane succeeded. */
  remove(lane: L): void {
    this.#dueMs.delete(this.#keyOf(lane))
  }
}
