/** One thing that has to turn for its process to be alive: how long it has not, and how long it may. */
export interface Pulse {
  loop: string
  quietMs: number
  limitMs: number
}

/** Whatever turns in a process. */
export interface Vitals {
  /** Watches something until the answer is called. */
  watch(loop: string, limitMs: number, quietMs: () => number): () => void
  pulses(): Pulse[]
}

/** Makes the register of what turns in a process. */
export function makeVitals(): Vitals {
  const watched = new Set<() => Pulse>()
  return {
    watch(loop, limitMs, quietMs) {
      const look = () => ({ loop, quietMs: Math.round(quietMs()), limitMs })
      watched.add(look)
      return () => void watched.delete(look)
    },
    pulses: () => [...watched].map((look) => look()),
  }
}

/** Those that have not turned for too long. */
export function stalledOf(pulses: readonly Pulse[]): Pulse[] {
  return pulses.filter(({ quietMs, limitMs }) => quietMs > limitMs)
}
