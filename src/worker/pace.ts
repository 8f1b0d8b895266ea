/** Says how many jobs to hold ready, by the rate at which they were started lately. */
export interface Pace {
  started(count: number, nowMs: number): void
  /** Nothing was there to claim: what comes next may be of another sort. */
  reset(nowMs: number): void
  /** How many jobs this worker will start within a moment. */
  ahead(): number
}

/** How far ahead a worker claims. Long enough to hide a claim's round trip, short enough that nobody waits for a busy worker. */
const lookAheadMs = 50
const windowMs = 5

/** Makes a pace. */
export function makePace(): Pace {
  let perMs = 0
  let count = 0
  let sinceMs = 0
  return {
    started(more, nowMs) {
      count += more
      const elapsedMs = nowMs - sinceMs
      if (elapsedMs < windowMs) return
      const measured = count / elapsedMs
      // up at once, for a wrong guess costs one release; down by halves, for one slow job says little
      perMs = measured > perMs ? measured : (perMs + measured) / 2
      count = 0
      sinceMs = nowMs
    },
    reset(nowMs) {
      perMs = 0
      count = 0
      sinceMs = nowMs
    },
    ahead: () => Math.floor(perMs * lookAheadMs),
  }
}
