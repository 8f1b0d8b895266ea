/**
 * Which keys are valid, without a query for each request. Clients that send invalid keys must not cost the database a query each, push valid keys
 * out of the cache, or block valid keys that this server has not seen yet:
 *
 * - An address may try a few unknown keys per second. They are counted before they are looked up.
 * - Few unknown keys are looked up at once, in one query, and one address gets at most half of them.
 * - The cache of invalid keys is small, short-lived, and separate from that of valid ones.
 */
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { ApiKey } from '../keys/keys.ts'
import { Buckets } from './buckets.ts'
import { type AskAll, KeyLookups } from './key-lookups.ts'
import { networkOf } from './network.ts'

/** How long the database's answer about a key is cached. A revoked key is refused within that time. */
export const keyFreshMs = 2_000
const mostGood = 10_000
const mostBad = 1_000
const mostAddresses = 10_000
/** The burst of an address, as a multiple of its rate per second. */
const burstFactor = 10

interface Known {
  key: Promise<ApiKey | null>
  untilMs: number
}

/** Shared by all requests: a stack for each would cost more than the rest of the response. */
const tooManyTries = new HoldfastError('rate_limited', 'Too many invalid API keys from this address; slow down.', {
  details: { retryAfterMs: 1_000 },
})

/** The settings that limit lookups of unknown keys. */
export type KeyLimits = Pick<Config, 'httpKeyTries' | 'httpKeyLookups'>

/** The keys that a server currently knows. */
export class KnownKeys {
  readonly #askAll: AskAll
  readonly #lookups: KeyLookups
  readonly #good = new Map<string, Known>()
  readonly #bad = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<ApiKey | null>>()
  readonly #underWayOf = new Map<string, number>()
  readonly #tries: Buckets<string>
  readonly #mostLookups: number

  constructor(askAll: AskAll, { httpKeyTries, httpKeyLookups }: KeyLimits) {
    this.#askAll = askAll
    this.#lookups = new KeyLookups(askAll)
    this.#mostLookups = httpKeyLookups
    this.#tries = new Buckets({ perSecond: httpKeyTries, burst: burstFactor * httpKeyTries, most: mostAddresses })
  }

  /** The key with this text, if it is valid. Throws rate_limited if its sender has tried too many invalid ones. */
  find(text: string, address: string | null): Promise<ApiKey | null> {
    const nowMs = performance.now()
    const good = this.#good.get(text)
    if (good) return good.untilMs > nowMs ? good.key : this.#askAgain(text, nowMs)
    if ((this.#bad.get(text) ?? 0) > nowMs) return Promise.resolve(null)
    return this.#underWay.get(text) ?? this.#tryOut(text, networkOf(address))
  }

  /** Looks up a key that was valid, past all limits for unknown keys. */
  #askAgain(text: string, nowMs: number): Promise<ApiKey | null> {
    const before = this.#good.get(text)
    const key = this.#askAll([text]).then(([found]) => found ?? null)
    this.#good.set(text, { key, untilMs: nowMs + keyFreshMs })
    key.then(
      (found) => found === null && this.#good.delete(text),
      // an unreachable database says nothing about the key; the next request asks again
      () => before && this.#good.set(text, { ...before, untilMs: 0 }),
    )
    return key
  }

  #tryOut(text: string, network: string): Promise<ApiKey | null> {
    if (this.#isBusyFor(network) || this.#tries.take(network) > 0) throw tooManyTries
    const asked = this.#lookups
      .find(text)
      .then((key) => {
        if (key === null) this.#remember(this.#bad, mostBad, text, performance.now() + keyFreshMs)
        else {
          this.#tries.giveBack(network)
          this.#remember(this.#good, mostGood, text, { key: asked, untilMs: performance.now() + keyFreshMs })
        }
        return key
      })
      .finally(() => {
        this.#underWay.delete(text)
        this.#count(network, -1)
      })
    this.#underWay.set(text, asked)
    this.#count(network, 1)
    return asked
  }

  #count(network: string, change: 1 | -1): void {
    const count = (this.#underWayOf.get(network) ?? 0) + change
    if (count > 0) this.#underWayOf.set(network, count)
    else this.#underWayOf.delete(network)
  }

  #isBusyFor(network: string): boolean {
    const own = this.#underWayOf.get(network) ?? 0
    return this.#underWay.size >= this.#mostLookups || own >= this.#mostLookups / 2
  }

  #remember<Value>(known: Map<string, Value>, most: number, text: string, value: Value): void {
    known.set(text, value)
    if (known.size > most) known.delete(known.keys().next().value as string)
  }
}
