import type { ClaimedRow } from './lot.ts'

interface Waiting {
  row: ClaimedRow
  sinceMs: number
}

/** Claimed jobs that wait for a free handler, first in, first out. */
export class Prefetch {
  #waiting: Waiting[] = []
  #next = 0

  get size(): number {
    return this.#waiting.length - this.#next
  }

  push(rows: ClaimedRow[]): void {
    const sinceMs = performance.now()
    for (const row of rows) this.#waiting.push({ row, sinceMs })
  }

  /** The next one to be started, which waits no longer. */
  shift(): ClaimedRow | undefined {
    const first = this.#waiting[this.#next]
    this.#next += 1
    if (this.#next >= this.#waiting.length) this.#reset([])
    return first?.row
  }

  rows(): ClaimedRow[] {
    return this.#waiting.slice(this.#next).map(({ row }) => row)
  }

  /** Takes out those of which that is true, and answers them. */
  remove(isUnwanted: (row: ClaimedRow, sinceMs: number) => boolean): ClaimedRow[] {
    const kept: Waiting[] = []
    const removed: ClaimedRow[] = []
    for (const one of this.#waiting.slice(this.#next)) {
      if (isUnwanted(one.row, one.sinceMs)) removed.push(one.row)
      else kept.push(one)
    }
    if (removed.length > 0) this.#reset(kept)
    return removed
  }

  #reset(waiting: Waiting[]): void {
    this.#waiting = waiting
    this.#next = 0
  }
}
