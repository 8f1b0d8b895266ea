/**
 * Writes to rows that another transaction may have locked: a person in psql, a backup script, another program. The invariant: however many
 * of them wait, and for however long, most connections stay free for everyone else.
 * - A write waits for a lock only briefly while it has a connection. Then it is undone, and tried again after a pause without one.
 * - Only some connections run first tries, and only one runs later tries, so that those who wait don't delay those who need not.
 *   Statements take turns there, so that a thousand writes of one statement don't delay a heartbeat.
 * - After `patienceMs` the caller gets an error that names the cause. Nothing was written.
 * A statement that is slow without waiting for a lock gets all the time that a statement may take.
 */
import { HoldfastError } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import { isCancelled, isLocked, isOvertime } from './connection.ts'
import type { Runner, Store } from './store.ts'

/** How long a write tries again while a row that it needs is locked. */
export interface Patience {
  /** Default: 15 s. */
  patienceMs?: number
  /** Gives up at once when aborted. */
  signal?: AbortSignal
}

/** One try. A wary one may wait for a lock only briefly. */
type Try<T> = (isWary: boolean) => Promise<T>

const usualPatienceMs = 15_000
/** How long the first try may take, lock or not. Far more than most statements need. */
const firstMs = 1_000
const lockMs = 100
const longestPauseMs = 1_000
/** How long all tries are wary after one has met a locked row: others may be locked as well. */
const waryMs = 30_000
/** With more than this, some would give up before their turn. */
const mostWaiting = 500

/** Runs such writes on a store. */
export class ContendedWrites {
  readonly #store: Pick<Store, 'run' | 'transaction'>
  readonly #first: Gate
  readonly #later = new Gate(1)
  #waiting = 0
  #waryUntilMs = Number.NEGATIVE_INFINITY

  constructor(store: Pick<Store, 'run' | 'transaction'>, poolSize: number) {
    this.#store = store
    this.#first = new Gate(Math.ceil(poolSize / 2))
  }

  /** Runs one statement. The first try needs no transaction, so that a write that meets no lock costs one round trip. */
  run: Store['contend'] = (statement, params, patience = {}) =>
    this.#persist(statement.name, patience, (isWary) =>
      isWary
        ? this.#store.transaction((runner) => runner.run(statement, params), { lockMs })
        : this.#store.run(statement, params, firstMs),
    )

  /** Runs a transaction. */
  transaction<T>(name: string, work: (runner: Runner) => Promise<T>, patience: Patience = {}): Promise<T> {
    return this.#persist(name, patience, (isWary) =>
      this.#store.transaction(work, { lockMs: isWary ? lockMs : firstMs, silentMs: Number.POSITIVE_INFINITY }),
    )
  }

  async #persist<T>(name: string, { patienceMs = usualPatienceMs, signal }: Patience, attempt: Try<T>): Promise<T> {
    const untilMs = performance.now() + patienceMs
    const isOver = () => signal?.aborted === true || performance.now() >= untilMs
    try {
      return await this.#first.run(name, () => this.#tryFirst(attempt))
    } catch (error) {
      if (!isLocked(error)) throw error
      if (this.#waiting >= mostWaiting || isOver()) throw lockedError(whatOf(name), error)
    }
    this.#waiting += 1
    try {
      for (let tries = 1; ; tries++) {
        await pause(Math.min(longestPauseMs, 25 * 2 ** tries), signal)
        try {
          return await this.#later.run(name, () => this.#tryWarily(attempt))
        } catch (error) {
          if (!isLocked(error)) throw error
          if (isOver()) throw lockedError(whatOf(name), error)
        }
      }
    } finally {
      this.#waiting -= 1
    }
  }

  /** A statement that the first try had no time for runs again: if no lock blocks it, with all the time that it needs. */
  async #tryFirst<T>(attempt: Try<T>): Promise<T> {
    if (performance.now() < this.#waryUntilMs) return this.#tryWarily(attempt)
    try {
      return await attempt(false)
    } catch (error) {
      if (!isCancelled(error) && !isOvertime(error) && !isLocked(error)) throw error
      return this.#tryWarily(attempt)
    }
  }

  async #tryWarily<T>(attempt: Try<T>): Promise<T> {
    try {
      return await attempt(true)
    } catch (error) {
      if (isLocked(error)) this.#waryUntilMs = performance.now() + waryMs
      throw error
    }
  }
}

const whatOf = (name: string) => `A row that the statement ${name} needs`

/** The error of a write whose row stayed locked. The cause is what the server said, if it was asked. */
export function lockedError(what: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    'database_timeout',
    `${what} is locked by another transaction, so nothing was changed. Find that transaction with pg_locks and pg_stat_activity, end it or wait for it, and try again.`,
    { cause: cause ?? Object.assign(new Error('the row is locked'), { code: '55P03' }) },
  )
}

/** Lets only so many run at a time; the others wait in order. Names take turns, however many wait under one of them. */
class Gate {
  readonly #most: number
  readonly #waiting = new Map<string, (() => void)[]>()
  #running = 0

  constructor(most: number) {
    this.#most = most
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#most) await new Promise<void>((resolve) => this.#wait(name, resolve))
    else this.#running += 1
    try {
      return await work()
    } finally {
      const next = this.#next()
      if (next) next()
      else this.#running -= 1
    }
  }

  #wait(name: string, resolve: () => void): void {
    const same = this.#waiting.get(name)
    if (same) same.push(resolve)
    else this.#waiting.set(name, [resolve])
  }

  #next(): (() => void) | undefined {
    for (const [name, same] of this.#waiting) {
      const next = same.shift()
      this.#waiting.delete(name)
      if (same.length > 0) this.#waiting.set(name, same)
      return next
    }
    return undefined
  }
}
