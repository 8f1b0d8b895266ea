import type { Runner } from '../postgres/store.ts'
import { extendDeadlines } from './late.sql.ts'
import type { Settlement } from './outcome.ts'

/** A deadline that is nearer than `beforeMs` is set to `byMs` from now, and looked at again after `everyMs`. */
const extension = { beforeMs: 30_000, byMs: 60_000, everyMs: 2_000 }

/**
 * The deadlines of attempts whose handlers have returned and whose outcomes are not written yet. If a deadline passed, the attempt would count
 * as hung, and run again.
 */
export class UnwrittenDeadlines {
  readonly #store: Runner
  readonly #unwritten = new Set<Settlement>()
  #extendedAtMs = Number.NEGATIVE_INFINITY
  #isExtending = false

  constructor(store: Runner) {
    this.#store = store
  }

  add(settlement: Settlement): void {
    this.#unwritten.add(settlement)
  }

  /** Its outcome was written, or can't be. */
  delete(settlement: Settlement): void {
    this.#unwritten.delete(settlement)
  }

  /** Extends them, at most every two seconds. Called while outcomes have to wait. */
  async extend(): Promise<void> {
    const isRecent = this.#isExtending || performance.now() < this.#extendedAtMs + extension.everyMs
    if (isRecent || this.#unwritten.size === 0) return
    this.#isExtending = true
    this.#extendedAtMs = performance.now()
    const leaseIds = [...new Set([...this.#unwritten].map(({ fence }) => fence.leaseId))]
    try {
      await this.#store.run(extendDeadlines, { leaseIds, ...extension }, extension.everyMs)
    } finally {
      this.#isExtending = false
    }
  }
}
