/** How many jobs to claim ahead, going by the rate at which jobs were started lately. */
export interface PrefetchSize {
  started(count: number, nowMs: number): void
  /** Starts over after a claim found nothing: the next jobs may be different. */
  reset(nowMs: number): void
  /** How many jobs this worker will probably start within a moment. */
  ahead(): number
}

/** How far ahead a worker claims. Hides a claim's round trip, but is short enough that no job waits for a busy one. */
const lookAheadMs = 50
const windowMs = 5

/** Makes a prefetch size, which is 0 at first. */
export function makePrefetchSize(): PrefetchSize {
  let perMs = 0
  let count = 0
  let sinceMs = 0
  return {
    started(more, nowMs) {
      count += more
      const elapsedMs = nowMs - sinceMs
      if (elapsedMs < windowMs) return
      const measured = count / elapsedMs
      // up at once, because a wrong guess costs only a release; down by halves, because one slow job says little
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
