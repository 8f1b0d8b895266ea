/** A request to end, by signal. */
export interface Ending {
  /** Fires at the first signal. */
  readonly signal: AbortSignal
  /** Resolves at the first signal. */
  readonly asked: Promise<void>
}

// one Ctrl-C or one `kill` of a process group can arrive twice: directly, and forwarded by npm
const sameMs = 500

/**
 * Listens for signals until the process exits: a signal during cleanup must not interrupt it. A second signal, if it is one of `hurriedBy`, means
 * to end at once.
 */
export function listenForEnd(options: { hurriedBy: readonly NodeJS.Signals[]; onHurry: () => void }): Ending {
  const ending = new AbortController()
  let firstAtMs = 0
  const hear = (signal: NodeJS.Signals) => {
    const nowMs = performance.now()
    if (!ending.signal.aborted) {
      firstAtMs = nowMs
      return ending.abort()
    }
    if (nowMs - firstAtMs > sameMs && options.hurriedBy.includes(signal)) options.onHurry()
  }
  const asked = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve()))
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, hear)
  return { signal: ending.signal, asked }
}
