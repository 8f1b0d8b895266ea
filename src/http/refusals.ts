import type { Config } from '../config/config.ts'
import { Buckets } from './buckets.ts'
import { networkOf } from './network.ts'

const mostAddresses = 10_000
/** How many refusals an address gets at once before they are delayed, as a multiple of its rate per second. */
const burstFactor = 10
/** Limits the memory of delayed refusals. Beyond it, refusals are sent at once. */
const mostHeld = 1_000

/** The settings that delay refusals. */
export type RefusalLimits = Pick<Config, 'httpKeyTries' | 'httpRefusalMs'>

/**
 * Delays the responses to clients that are refused again and again. A connection carries one request at a time, so a client that waits for its
 * refusal can't send the next request. That slows a flood down to a few requests per connection, which costs next to nothing. Requests with valid
 * keys never get here.
 */
export class Refusals {
  readonly #delayMs: number
  readonly #refused: Buckets<string>
  readonly #held = new Set<() => void>()

  constructor({ httpKeyTries, httpRefusalMs }: RefusalLimits, stopping: AbortSignal) {
    this.#delayMs = httpRefusalMs
    this.#refused = new Buckets({ perSecond: httpKeyTries, burst: burstFactor * httpKeyTries, most: mostAddresses })
    stopping.addEventListener('abort', () => this.#releaseAll())
  }

  /** How many refusals are being delayed. */
  get held(): number {
    return this.#held.size
  }

  /** Resolves when the refusal may be sent; undefined if at once. */
  delay(address: string | null): Promise<void> | undefined {
    if (this.#refused.take(networkOf(address)) === 0) return undefined
    if (this.#delayMs === 0 || this.#held.size >= mostHeld) return undefined
    return new Promise((resolve) => {
      const release = () => {
        clearTimeout(timer)
        this.#held.delete(release)
        resolve()
      }
      const timer = setTimeout(release, this.#delayMs)
      this.#held.add(release)
    })
  }

  #releaseAll(): void {
    for (const release of [...this.#held]) release()
  }
}
