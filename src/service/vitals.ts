/** A loop that its process depends on: how long it has made no progress, and how long it may. */
export interface Pulse {
  loop: string
  quietMs: number
  limitMs: number
}

/** The loops of a process. */
export interface Vitals {
  /** Watches a loop; call the returned function to stop. */
  watch(loop: string, limitMs: number, quietMs: () => number): () => void
  pulses(): Pulse[]
}

/** Makes the register of the loops of a process. */
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

/** Whether a process is alive, as its probes report it. */
export interface Liveness {
  isAlive: boolean
  /** What has stopped, in sentences. */
  reasons: string[]
  loops: readonly Pulse[]
}

/** A process is alive if all its loops turn. */
export function livenessOf(loops: readonly Pulse[]): Liveness {
  const reasons = stalledOf(loops).map(
    ({ loop, quietMs, limitMs }) => `The ${loop} has not run for ${quietMs} ms; the limit is ${limitMs} ms.`,
  )
  return { isAlive: reasons.length === 0, reasons, loops }
}

/** The loops that have made no progress for longer than they may. */
export function stalledOf(pulses: readonly Pulse[]): Pulse[] {
  return pulses.filter(({ quietMs, limitMs }) => quietMs > limitMs)
}
