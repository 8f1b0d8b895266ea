/** A wish to end, by signal. */
export interface Ending {
  /** Fires at the first signal. */
  readonly signal: AbortSignal
  /** Resolves at the first signal. */
  readonly asked: Promise<void>
}

// one Ctrl-C or one `kill` of a process group can arrive twice: from the terminal, and passed on by npm
const sameMs = 500

/**
 * Listens for the wish to end, until the process does: a signal that comes while the last things are put away must not
 * cut them short. A later signal of those in `hurriedBy` means: at once.
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
