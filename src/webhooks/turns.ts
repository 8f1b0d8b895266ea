/** Limits how much each tenant does at once. A tenant beyond its limit waits for its own turns, never for those of another tenant. */
export class Turns {
  readonly #most: number
  readonly #tenants = new Map<string, { underWay: number; waiting: Set<() => void> }>()

  constructor(most: number) {
    this.#most = most
  }

  /** Resolves when it is the caller's turn, with a function that ends the turn. Rejects if the signal fires first. */
  async take(tenant: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const own = this.#tenants.get(tenant) ?? { underWay: 0, waiting: new Set() }
    this.#tenants.set(tenant, own)
    if (own.underWay < this.#most) own.underWay++
    else await handedOver(own.waiting, signal)
    return () => {
      const [next] = own.waiting
      if (next) return next()
      own.underWay--
      if (own.underWay === 0) this.#tenants.delete(tenant)
    }
  }
}

/** Resolves when a turn that ends is passed on. */
function handedOver(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      waiting.delete(go)
      reject(signal.reason)
    }
    const go = () => {
      waiting.delete(go)
      signal.removeEventListener('abort', stop)
      resolve()
    }
    waiting.add(go)
    signal.addEventListener('abort', stop, { once: true })
  })
}
