import type { ClaimBatch } from '../transitions/claim.sql.ts'
import { keyOf, type Lane, rotated } from './lanes.ts'

/** How often a busy worker looks further back than the floor it has reached. */
const wideEveryMs = 250
/** How far back such a look goes if a look at everything is slow. Most late transactions are less late than this. */
const marginUs = 2_000_000
/** Looks at everything may take at most one part in this many of the time. */
const fullShare = 40
/** But they are never further apart than this: one may have been slow because a handler blocked the event loop. */
const longestMs = { busy: 5_000, idle: 1_000 }

/** The lanes that a claim looks at, in order, and where it starts in each; null for the beginning of the lane. */
export interface Look {
  lanes: Lane[]
  floors: (number | null)[]
  /** Whether it looks at all due jobs. */
  isFull: boolean
}

/**
 * How far a worker has come in its lanes, so that claims need not start at the beginning. Claimed jobs leave dead index
 * entries there, which can't be cleaned up while an old snapshot is open, and every claim would scan all of them.
 *
 * Most jobs come due in order, but not all: a transaction that commits late adds jobs below the floor, and a released
 * job returns to its old position. An idle worker finds those at once, and a busy one soon. Where a look at everything
 * has become slow, it is made so rarely that it hardly costs anything.
 */
export class Floors {
  readonly #reached = new Map<string, number>()
  #isBusy = false
  #looks = 0
  // counted separately: if every n-th look were full, some of n kinds might never come first, and in a backlog only the
  // first is reached
  #fullLooks = 0
  #wideAtMs = 0
  #lastFull = { endedMs: Number.NEGATIVE_INFINITY, ms: 0 }

  /** Where the next claim starts. `which`: the lanes that it covers. */
  look(all: Lane[], nowMs: number, which = (lanes: Lane[]) => lanes): Look {
    const isTight = this.#isBusy && nowMs < this.#wideAtMs
    const restMs = Math.min(fullShare * this.#lastFull.ms, this.#isBusy ? longestMs.busy : longestMs.idle)
    const isFull = !isTight && nowMs >= this.#lastFull.endedMs + restMs
    if (!isTight) this.#wideAtMs = nowMs + wideEveryMs
    const lanes = which(rotated(all, isFull ? this.#fullLooks++ : this.#looks++))
    const backUs = isTight ? 0 : marginUs
    const floors = lanes.map((lane) => {
      const reached = isFull ? undefined : this.#reached.get(keyOf(lane))
      return reached === undefined ? null : reached - backUs
    })
    return { lanes, floors, isFull }
  }

  /** Raises the floors after a claim. `isFilled`: it returned as many jobs as it asked for. */
  raise(
    batches: readonly ClaimBatch[],
    { isFull, isFilled, ms, nowMs }: { isFull: boolean; isFilled: boolean; ms: number; nowMs: number },
  ): void {
    this.#isBusy = isFilled
    if (isFull) this.#lastFull = { endedMs: nowMs, ms }
    for (const { kind, queue, priority, due_us } of batches) {
      const key = keyOf({ kind, queue, priority })
      this.#reached.set(key, Math.max(this.#reached.get(key) ?? 0, due_us))
    }
  }
}
