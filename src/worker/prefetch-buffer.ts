import { type ClaimedRow, sizeOf } from './claim-batch.ts'
import { later, type Taker } from './handover.ts'

/** Waiting jobs, as the heartbeat thread gets them. Lists are strings, because there may be thousands a second. */
export interface Prefetched {
  /** The number of the first job. */
  from: number
  sessionId: number
  ids: string
  /** Empty if all are first attempts, as most are. */
  attempts: string
  /** The lease of each job, the lease's size, and the job's slot in it. */
  leases: string
  sizes: string
  slots: string
}

interface Waiting {
  row: ClaimedRow
  sinceMs: number
}

/** How many started jobs stay in the list. Removing each one at once would move all the others. */
const mostStarted = 1_000

/** Claimed jobs that wait for a free slot, first in, first out. */
export class PrefetchBuffer {
  readonly #taker: Taker
  readonly #tell: (jobs: Prefetched) => void
  #waiting: Waiting[] = []
  #next = 0
  #bytes = 0

  constructor(taker: Taker, tell: (jobs: Prefetched) => void) {
    this.#taker = taker
    this.#tell = tell
  }

  get size(): number {
    return this.#waiting.length - this.#next
  }

  /** The size of the inputs and outputs that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds jobs. The heartbeat thread need not know of a single job that is started at once. */
  push(rows: ClaimedRow[], isStartedAtOnce: boolean): void {
    const sinceMs = performance.now()
    if (rows.length > 1 || !isStartedAtOnce) this.#announce(rows, this.size)
    for (const row of rows) {
      this.#waiting.push({ row, sinceMs })
      this.#bytes += sizeOf(row)
    }
  }

  /** Removes and returns the next job to start. */
  shift(): ClaimedRow | undefined {
    while (this.size > 0) {
      if (this.#taker.take(1)) return this.#advance()
      this.#dropYielded()
    }
    return undefined
  }

  rows(): ClaimedRow[] {
    return this.#waiting.slice(this.#next).map(({ row }) => row)
  }

  /** Removes and returns the jobs for which this is true. */
  remove(isUnwanted: (row: ClaimedRow, sinceMs: number) => boolean): ClaimedRow[] {
    const all = this.#waiting.slice(this.#next)
    if (!all.some(({ row, sinceMs }) => isUnwanted(row, sinceMs))) return []
    // the jobs that stay get new numbers, after all that the heartbeat thread knows of
    while (!this.#taker.take(this.size)) this.#dropYielded()
    const kept: Waiting[] = []
    const removed: ClaimedRow[] = []
    for (const one of this.#waiting.slice(this.#next)) {
      if (isUnwanted(one.row, one.sinceMs)) removed.push(one.row)
      else kept.push(one)
    }
    this.#reset(kept)
    this.announceAll()
    return removed
  }

  /** Tells a new heartbeat thread of all waiting jobs. */
  announceAll(): void {
    this.#announce(this.rows(), 0)
  }

  #announce(rows: ClaimedRow[], offset: number): void {
    const [first] = rows
    if (!first) return
    this.#tell({
      from: later(this.#taker.next, offset),
      sessionId: first.sessionId,
      ids: rows.map(({ id }) => id).join(),
      attempts: rows.every(({ attempt }) => attempt === 1) ? '' : rows.map(({ attempt }) => attempt).join(),
      leases: rows.map(({ leaseId }) => leaseId).join(),
      sizes: rows.map(({ leaseSize }) => leaseSize).join(),
      slots: rows.map(({ slot }) => slot).join(),
    })
  }

  #advance(): ClaimedRow {
    const { row } = this.#waiting[this.#next] as Waiting
    this.#next += 1
    this.#bytes -= sizeOf(row)
    if (this.#next === this.#waiting.length) this.#reset([])
    // a buffer that is topped up before it is empty must not keep every job that it ever held
    else if (this.#next >= mostStarted) this.#reset(this.#waiting.slice(this.#next))
    return row
  }

  /** Drops the first jobs, which the heartbeat thread has taken to release them. */
  #dropYielded(): void {
    this.#reset(this.#waiting.slice(this.#next + this.#taker.yielded()))
  }

  #reset(waiting: Waiting[]): void {
    this.#waiting = waiting
    this.#next = 0
    this.#bytes = waiting.reduce((sum, { row }) => sum + sizeOf(row), 0)
  }
}
