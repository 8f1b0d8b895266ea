/** Measures how long something takes, and for how much of that the machine was too busy to run us. */
export interface Stopwatch {
  /** Starts over. */
  reset(): void
  stop(): { tookMs: number; starvedMs: number }
}

const tickMs = 10

/**
 * Starts a stopwatch. It counts how late its own ticks are: during that time no process of this machine could rely on running, and on an
 * overloaded machine that is not the product's fault.
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
