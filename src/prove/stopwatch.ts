/** Measures a time, and how much of it the machine kept from us. */
export interface Stopwatch {
  /** Begins anew. */
  reset(): void
  stop(): { tookMs: number; starvedMs: number }
}

const tickMs = 10

/**
 * Starts a stopwatch. What its own ticks come late is time in which nobody on this machine could count on running: on a machine that is
 * far too busy, that is not the product's doing.
 */
export function startStopwatch(): Stopwatch {
  let startedMs = performance.now()
  let lastMs = startedMs
  let starvedMs = 0
  const ticker = setInterval(() => {
    const nowMs = performance.now()
    starvedMs += Math.max(0, nowMs - lastMs - 2 * tickMs)
    lastMs = nowMs
  }, tickMs)
  return {
    reset() {
      startedMs = performance.now()
      lastMs = startedMs
      starvedMs = 0
    },
    stop() {
      clearInterval(ticker)
      return { tookMs: performance.now() - startedMs, starvedMs }
    },
  }
}
