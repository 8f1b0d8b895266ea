import type pg from 'pg'

// about as long as a server takes to open a connection
const leastPatienceMs = 50
const mostPatienceMs = 500
// on a machine so busy that statements take long, more connections only make it busier
const worthStatements = 5
// the loops of an idle process coincide a few times a second, for some milliseconds; one that waits longer has work for another connection
const waitShare = 0.5
const waitMostMs = 500

/**
 * Lends the connections of a pool, and is slow to open new ones. The loops of an idle process ask at the same moments, for a millisecond
 * each: without patience, each of them would keep a connection of its own, and thirty idle workers would fill a server. So while all
 * connections are lent, a caller waits for as long as a few statements take before another connection is opened.
 */
export class ClientPool {
  readonly #pool: pg.Pool
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  readonly #lentAtMs = new WeakMap<pg.PoolClient, number>()
  #lent = 0
  /** How long a connection is usually lent. */
  #usualMs = 0
  /** How much more time callers may spend waiting. It grows by a share of the time that passes. */
  #waitLeftMs = waitMostMs
  #countedAtMs = performance.now()

  constructor(pool: pg.Pool, most: number) {
    this.#pool = pool
    this.#most = most
  }

  async take(): Promise<pg.PoolClient> {
    if (this.#isGrowing() && this.#mayWait()) await this.#wait()
    else this.#lent += 1
    try {
      const client = await this.#pool.connect()
      this.#lentAtMs.set(client, performance.now())
      return client
    } catch (error) {
      this.#passOn()
      throw error
    }
  }

  /** Takes a connection back, or drops it if it is unfit. */
  giveBack(client: pg.PoolClient, isUnfit: boolean): void {
    this.#learn(client)
    client.release(isUnfit)
    this.#passOn()
  }

  /** Whether another connection would have to be opened. */
  #isGrowing(): boolean {
    const { totalCount } = this.#pool
    return this.#lent > 0 && this.#lent >= totalCount && totalCount < this.#most
  }

  /** Whether callers have waited little of late. Otherwise a busy process would share one connection forever, because no single wait is long. */
  #mayWait(): boolean {
    const nowMs = performance.now()
    this.#waitLeftMs = Math.min(waitMostMs, this.#waitLeftMs + (nowMs - this.#countedAtMs) * waitShare)
    this.#countedAtMs = nowMs
    return this.#waitLeftMs > 0
  }

  /** Waits until a connection is passed on, or until it is time to open one. */
  #wait(): Promise<void> {
    const sinceMs = performance.now()
    return new Promise((resolve) => {
      const end = () => {
        this.#waitLeftMs -= performance.now() - sinceMs
        resolve()
      }
      const pass = () => {
        clearTimeout(timer)
        end()
      }
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(pass), 1)
        this.#lent += 1
        end()
      }, this.#patienceMs())
      this.#waiting.push(pass)
    })
  }

  #patienceMs(): number {
    return Math.min(mostPatienceMs, Math.max(leastPatienceMs, worthStatements * this.#usualMs))
  }

  /** Passes a returned connection on to the caller that has waited longest, before another can ask for it. */
  #passOn(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#lent -= 1
  }

  /** A running mean. It is capped, because a statement that waited for a lock says nothing about the others. */
  #learn(client: pg.PoolClient): void {
    const tookMs = performance.now() - (this.#lentAtMs.get(client) ?? performance.now())
    this.#usualMs += 0.1 * (Math.min(tookMs, mostPatienceMs) - this.#usualMs)
  }
}
