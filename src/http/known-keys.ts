/**
 * Which keys are good, without asking the database about each request. Whoever sends keys that nobody made must neither cost the database a query each
 * nor make it forget those that are good: an address may ask about a few unknown keys a second, only a few such questions are under way at once, and
 * what is known of bad keys stands apart from what is known of good ones.
 */
import type { ApiKey } from '../engine/keys.ts'
import { HoldfastError } from '../errors/errors.ts'
import { Buckets } from './buckets.ts'

/** For how long an answer of the database about a key counts, so that a key which is revoked is refused within that time. */
export const keyFreshMs = 2_000
const mostGood = 10_000
const mostBad = 1_000
const mostAddresses = 10_000
/** Unknown keys that one address may try: so many a second, and for a moment more. */
const triesPerSecond = 20
const tryBurst = 200
/** Questions about unknown keys that may be under way at once, whoever sends them. */
const mostTries = 20

interface Known {
  key: Promise<ApiKey | null>
  untilMs: number
}

/** The keys that a server knows at this moment. */
export class KnownKeys {
  readonly #ask: (text: string) => Promise<ApiKey | null>
  readonly #good = new Map<string, Known>()
  readonly #bad = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<ApiKey | null>>()
  readonly #tries = new Buckets<string>({ perSecond: triesPerSecond, burst: tryBurst, most: mostAddresses })

  constructor(ask: (text: string) => Promise<ApiKey | null>) {
    this.#ask = ask
  }

  /** The key with this text, if it is good. Throws rate_limited if its sender has tried too many that are not. */
  find(text: string, address: string | null): Promise<ApiKey | null> {
    const nowMs = performance.now()
    const good = this.#good.get(text)
    if (good) return good.untilMs > nowMs ? good.key : this.#askAgain(text, nowMs)
    if ((this.#bad.get(text) ?? 0) > nowMs) return Promise.resolve(null)
    return this.#underWay.get(text) ?? this.#tryOut(text, networkOf(address))
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
    const retryAfterMs = this.#underWay.size >= mostTries ? 1_000 : this.#tries.take(network)
    if (retryAfterMs > 0)
      throw new HoldfastError(
        'rate_limited',
        'Too many API keys that do not exist come from this address; slow down.',
        {
          details: { retryAfterMs },
        },
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
    this.#underWay.set(text, asked)
    return asked
  }

  #remember<Value>(known: Map<string, Value>, most: number, text: string, value: Value): void {
    known.set(text, value)
    if (known.size > most) known.delete(known.keys().next().value as string)
  }
}

/** The network that an address is of: whoever has one address of IPv6 has all of its network. */
export function networkOf(address: string | null): string {
  if (address === null) return ''
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail = ''] = plain.split('::', 2)
  const groups = head.split(':').filter(Boolean)
  const rest = tail.split(':').filter(Boolean)
  const whole = [...groups, ...Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0'), ...rest]
  return `${whole.slice(0, 4).join(':')}::/64`
}
