/**
 * Carrying on bulk operations. The invariant: a job is changed in the transaction that moves the cursor past it. So whatever a process does or
 * suffers, no job is changed twice or passed over: a page that did not commit is done again, by whoever takes the operation next.
 *
 * Who else may touch the row: a stop, which waits for the page and ends the term; another process, once the lease has run out, under a higher
 * term. Both are found by the first statement of the next page, which locks the row under its term.
 *
 * A job that another transaction holds locked is listed as skipped and tried again in later passes. If the database refuses a page, or a lock
 * is not granted in time, the page is repeated in parts, until the job at fault is alone.
 */
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { highestId, lowestId } from '../job/id.ts'
import { isHeldUp, isNobodysFault } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { pause } from '../service/service.ts'
import { type Acted, type ActOptions, act, skip } from './act.ts'
import { claimBulk, endPass, type HeldBulk, holdBulk, lockedOnes, noteProgress, releaseBulk } from './carry-on.sql.ts'
import { lookForJobs, mostAfter } from './find.ts'

/** What happens while bulk operations are carried on, for logs and metrics. */
export interface BulkObserver {
  /** A page has committed. */
  paged(bulk: HeldBulk, counts: { done: number; skipped: number }): void
  finished(bulk: HeldBulk): void
  failed(bulk: HeldBulk, error: unknown): void
}

/** What a process needs to carry on bulk operations. */
export interface CarryOptions extends ActOptions {
  store: Store
  /** The name of this process in the rows that it holds. */
  holder: string
  /** How long a process may be silent before another one takes its operation over. */
  leaseMs: number
  observer: BulkObserver
}

/** How long one operation may go on while others wait. */
const turnMs = 1_000
/** How many jobs one transaction changes, and how many one look returns. */
const pageSize = 250
const lookSize = 1_000
const lockMs = 100
const ways = 8
/** How many skipped jobs are listed. All are counted. */
export const mostListed = 10_000
/** How often jobs that were locked are tried again, and how long before. */
const passes = 3
const passMs = 1_000
const errorPauseMs = 5_000

/** A page that was not changed, because the operation was stopped or another process has it. */
const lost = 'lost'

/** Carries on the bulk operation that has waited longest, for one turn. Returns whether there was one. */
export async function carryOn(options: CarryOptions, signal?: AbortSignal): Promise<boolean> {
  const { store, holder, leaseMs, observer } = options
  const [bulk] = await store.run(claimBulk, { holder, leaseMs })
  if (!bulk) return false
  const { id, term } = bulk
  try {
    const pauseMs = await new Turn(options, bulk, signal).run()
    if (pauseMs !== lost) await store.run(releaseBulk, { id, term, pauseMs, error: null })
  } catch (error) {
    observer.failed(bulk, error)
    // if this fails as well, the lease runs out
    await store.run(releaseBulk, { id, term, pauseMs: Math.min(errorPauseMs, leaseMs), error: messageOf(error) })
  }
  return true
}

/** One process with one operation, for a while. */
class Turn {
  readonly #options: CarryOptions
  readonly #bulk: HeldBulk
  readonly #signal: AbortSignal | undefined
  readonly #untilMs = performance.now() + turnMs
  #cursor: string | null
  #most = lookSize
  /** When the next page may start, by the rate. */
  #freeMs = performance.now()

  constructor(options: CarryOptions, bulk: HeldBulk, signal: AbortSignal | undefined) {
    this.#options = options
    this.#bulk = bulk
    this.#signal = signal
    this.#cursor = bulk.cursor
  }

  /** Returns how long to pause before the next turn, or that there is none for this process. */
  async run(): Promise<number | typeof lost> {
    for (;;) {
      const { ids, next } = await this.#look()
      const changed = await this.#change(ids, next)
      if (changed === lost) return lost
      if (changed === 'kept' && next === null) return this.#endPass()
      if (changed === 'cut' || this.#isOver()) return Math.max(0, this.#freeMs - performance.now())
    }
  }

  /** The next jobs: those that match, or in later passes those that were locked. */
  async #look(): Promise<{ ids: string[]; next: string | null }> {
    const { store } = this.#options
    const { id, filter, seq, pass } = this.#bulk
    if (pass === 0) {
      const look = { below: this.#cursor, seq, limit: lookSize, most: this.#most }
      const { rows, next } = await lookForJobs(store, filter, look)
      this.#most = mostAfter(look, rows.length)
      return { ids: rows.map((row) => row.id), next }
    }
    const rows = await store.run(lockedOnes, { id, below: this.#cursor ?? highestId, limit: lookSize })
    const ids = rows.map((row) => row.id)
    return { ids, next: ids.length < lookSize ? null : (ids.at(-1) as string) }
  }

  /** Changes jobs page by page, and moves the cursor to `next`, unless the turn is over before. */
  async #change(ids: string[], next: string | null): Promise<'kept' | 'cut' | typeof lost> {
    const size = this.#pageSize()
    for (let from = 0; from < ids.length; from += size) {
      const page = ids.slice(from, from + size)
      if (!(await this.#isFreeFor(page.length))) return 'cut'
      const isLast = from + size >= ids.length
      if ((await this.#page(page, isLast ? (next ?? lowestId) : (page.at(-1) as string))) === lost) return lost
      if (this.#isOver() && !isLast) return 'cut'
    }
    return ids.length > 0 ? 'kept' : this.#page([], next ?? lowestId)
  }

  /** One transaction; if it fails because of a job, several. */
  async #page(ids: string[], cursor: string): Promise<'kept' | typeof lost> {
    const { store } = this.#options
    let isHeld = false
    try {
      const acted = await store.transaction(
        async (runner) => {
          const [held] = await runner.run(holdBulk, this.#bulk)
          if (!held) return lost
          isHeld = true
          const told = ids.length > 0 ? await act(runner, this.#bulk, ids, this.#options) : { done: [], skipped: [] }
          await runner.run(noteProgress, this.#progress(told, cursor))
          return told
        },
        { lockMs },
      )
      return this.#paged(acted, cursor)
    } catch (error) {
      if (!isHeld || isOurs(error)) throw error
      return this.#inParts(ids, cursor, error)
    }
  }

  async #inParts(ids: string[], cursor: string, error: unknown): Promise<'kept' | typeof lost> {
    if (ids.length <= 1) return this.#giveUp(ids, cursor, error)
    const size = Math.ceil(ids.length / ways)
    for (let from = 0; from < ids.length; from += size) {
      const part = ids.slice(from, from + size)
      const isLast = from + size >= ids.length
      if ((await this.#page(part, isLast ? cursor : (part.at(-1) as string))) === lost) return lost
    }
    return 'kept'
  }

  /** Lists the job that the database refuses to change, and goes on. */
  async #giveUp([id]: string[], cursor: string, error: unknown): Promise<'kept' | typeof lost> {
    if (id === undefined) throw error
    const skipped = [isHeldUp(error) ? skip(id, 'locked') : skip(id, 'refused', messageOf(error).slice(0, 500))]
    const told = { done: [], skipped }
    const [noted] = await this.#options.store.run(noteProgress, this.#progress(told, cursor))
    return this.#paged(noted ? told : lost, cursor)
  }

  #paged(acted: Acted | typeof lost, cursor: string): 'kept' | typeof lost {
    if (acted === lost) return lost
    this.#cursor = cursor
    this.#options.observer.paged(this.#bulk, { done: acted.done.length, skipped: acted.skipped.length })
    return 'kept'
  }

  #progress({ done, skipped }: Acted, cursor: string) {
    const { id, term, pass } = this.#bulk
    return {
      id,
      term,
      cursor,
      leaseMs: this.#options.leaseMs,
      done: done.length,
      noLonger: pass === 0 ? [] : done,
      skipped: {
        ids: skipped.map((one) => one.id),
        reasons: skipped.map(({ reason }) => reason),
        errors: skipped.map(({ error }) => error),
      },
      mostListed,
    }
  }

  async #endPass(): Promise<typeof lost> {
    const { id, term } = this.#bulk
    const [ended] = await this.#options.store.run(endPass, { id, term, passes, pauseMs: passMs })
    if (ended?.state === 'finished') this.#options.observer.finished(this.#bulk)
    // the row is released already
    return lost
  }

  #isOver(): boolean {
    return performance.now() >= this.#untilMs || this.#signal?.aborted === true
  }

  /** With a rate, about four pages a second. */
  #pageSize(): number {
    const { rate } = this.#bulk
    return rate === null ? pageSize : Math.max(1, Math.min(pageSize, Math.floor(rate / 4)))
  }

  /** Waits until the rate allows the next page, which then uses up so much time. If that is too long for the lease, the turn ends. */
  async #isFreeFor(jobs: number): Promise<boolean> {
    const { rate } = this.#bulk
    if (rate === null) return true
    const waitMs = this.#freeMs - performance.now()
    if (waitMs > this.#options.leaseMs / 2) return false
    if (waitMs > 0) await pause(waitMs, this.#signal)
    this.#freeMs = Math.max(performance.now(), this.#freeMs) + (jobs / rate) * 1_000
    return true
  }
}

/** Whether an error has nothing to do with a job of the page. */
function isOurs(error: unknown): boolean {
  return isNobodysFault(error) || (error instanceof HoldfastError && error.code === 'not_running')
}
