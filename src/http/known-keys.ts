/**
 * Which keys are good, without asking the database about each request. Whoever sends keys that do not exist must neither cost the database a query each,
 * nor make it forget good keys, nor keep keys out that this server has not seen yet:
 *
 * - An address may try a few unknown keys a second. Those are counted before anybody looks them up.
 * - Few look-ups of unknown keys run at once, and one address gets half of them.
 * - What is known of bad keys is small, short-lived, and kept apart from what is known of good ones.
 */
import type { Config } from '../config/config.ts'
import type { ApiKey } from '../engine/keys.ts'
import { HoldfastError } from '../errors/errors.ts'
import { Buckets } from './buckets.ts'
import { networkOf } from './network.ts'

/** For how long an answer of the database about a key counts, so that a key which is revoked is refused within that time. */
export const keyFreshMs = 2_000
const mostGood = 10_000
const mostBad = 1_000
const mostAddresses = 10_000
/** For a moment, an address may try so many times what it may try in a second. */
const burstFactor = 10

interface Known {
  key: Promise<ApiKey | null>
  untilMs: number
}

/** The settings that limit the look-ups of unknown keys. */
export type KeyLimits = Pick<Config, 'httpKeyTries' | 'httpKeyLookups'>

/** The keys that a server knows at this moment. */
export class KnownKeys {
  readonly #ask: (text: string) => Promise<ApiKey | null>
  readonly #good = new Map<string, Known>()
  readonly #bad = new Map<string, number>()
  readonly #underWay = new Map<string, { key: Promise<ApiKey | null>; network: string }>()
  readonly #tries: Buckets<string>
  readonly #mostLookups: number

  constructor(ask: (text: string) => Promise<ApiKey | null>, { httpKeyTries, httpKeyLookups }: KeyLimits) {
    this.#ask = ask
    this.#mostLookups = httpKeyLookups
    this.#tries = new Buckets({ perSecond: httpKeyTries, burst: burstFactor * httpKeyTries, most: mostAddresses })
  }

  /** The key with this text, if it is good. Throws rate_limited if its sender has tried too many that are not. */
  find(text: string, address: string | null): Promise<ApiKey | null> {
    const nowMs = performance.now()
    const good = this.#good.get(text)
    if (good) return good.untilMs > nowMs ? good.key : this.#askAgain(text, nowMs)
    if ((this.#bad.get(text) ?? 0) > nowMs) return Promise.resolve(null)
    return this.#underWay.get(text)?.key ?? this.#tryOut(text, networkOf(address))
  }

  /** One that was good is asked about whatever strangers do. */
  #askAgain(text: string, nowMs: number): Promise<ApiKey | null> {
    const before = this.#good.get(text)
    const key = this.#ask(text)
    this.#good.set(text, { key, untilMs: nowMs + keyFreshMs })
    key.then(
      (found) => found === null && this.#good.delete(text),
      // a database that is away says nothing of the key: the next request asks again
      () => before && this.#good.set(text, { ...before, untilMs: 0 }),
    )
    return key
  }

  #tryOut(text: string, network: string): Promise<ApiKey | null> {
    const retryAfterMs = this.#isBusyFor(network) ? 1_000 : this.#tries.take(network)
    if (retryAfterMs > 0)
      throw new HoldfastError(
        'rate_limited',
        'Too many API keys that do not exist come from this address; slow down.',
        { details: { retryAfterMs } },
      )
    const asked = this.#ask(text)
      .then((key) => {
        if (key === null) this.#remember(this.#bad, mostBad, text, performance.now() + keyFreshMs)
        else {
          this.#tries.giveBack(network)
          this.#remember(this.#good, mostGood, text, { key: asked, untilMs: performance.now() + keyFreshMs })
        }
        return key
      })
      .finally(() => this.#underWay.delete(text))
    this.#underWay.set(text, { key: asked, network })
    return asked
  }

  #isBusyFor(network: string): boolean {
    if (this.#underWay.size >= this.#mostLookups) return true
    let own = 0
    for (const one of this.#underWay.values()) if (one.network === network) own += 1
    return own >= this.#mostLookups / 2
  }

  #remember<Value>(known: Map<string, Value>, most: number, text: string, value: Value): void {
    known.set(text, value)
    if (known.size > most) known.delete(known.keys().next().value as string)
  }
}
