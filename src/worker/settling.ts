import type { HeldFence } from '../job/id.ts'
import { isFileError, isPassing } from '../postgres/connection.ts'
import type { Outcome, Settled } from '../settle/outcome.ts'
import { failureOf, parkedOf } from '../settle/park.ts'
import type { Settler } from '../settle/settle.ts'
import { type Attempt, heldFenceOf } from './attempt.ts'
import type { ClaimedRow } from './claim-batch.ts'
import type { Reports } from './progress.ts'
import { endAttempt } from './span.ts'

/** What it takes to settle attempts. */
export interface SettlingOptions {
  settler: Settler
  reports: Reports
  onSettled: (attempt: Attempt, outcome: Outcome) => void
  /** An attempt is no longer held in the database. */
  onWritten: () => void
  onError: (error: unknown) => void
}

/** Attempts that have ended, but are held in the database until their outcomes are written. */
export class Settling {
  readonly #options: SettlingOptions
  readonly #fences = new Set<HeldFence>()

  constructor(options: SettlingOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#fences.size
  }

  fences(): HeldFence[] {
    return [...this.#fences]
  }

  /** Writes the outcome of an attempt, after its reports. */
  settle(attempt: Attempt, outcome: Outcome): void {
    // a cancelled job is already final, so there is nothing to write about this attempt
    if (attempt.abortedBy === 'cancelled') {
      endAttempt(attempt, outcome, 'cancelled')
      return
    }
    this.#fences.add(attempt.fence)
    const reported = this.#options.reports.flushFor(attempt)
    if (reported) void reported.then(() => this.#write(attempt, outcome))
    else this.#write(attempt, outcome)
  }

  /** Releases jobs that were never started. */
  release(rows: ClaimedRow[]): void {
    const { settler, onError } = this.#options
    for (const row of rows) {
      const fence = heldFenceOf(row)
      this.#fences.add(fence)
      const released = settler.settle({ fence, outcome: { move: 'release' } }).catch(onError)
      void released.then(() => this.#forget(fence))
    }
  }

  #write(attempt: Attempt, outcome: Outcome): void {
    const { fence } = attempt
    this.#options.settler.put({ fence, outcome }, (answer) =>
      answer instanceof Error ? this.#refused(attempt, outcome, answer) : this.#wrote(attempt, outcome, answer),
    )
  }

  #wrote(attempt: Attempt, outcome: Outcome, settled: Settled): void {
    endAttempt(attempt, outcome, settled)
    if (settled === 'settled') this.#options.onSettled(attempt, outcome)
    this.#forget(attempt.fence)
  }

  #forget(fence: HeldFence): void {
    this.#fences.delete(fence)
    this.#options.onWritten()
  }

  /**
   * Postgres refused the outcome. Retrying wouldn't help, so the attempt fails with the reason. If Postgres refuses
   * every ending, or can't write a file, the job is parked with its outcome: its work is done and must not be repeated.
   */
  #refused(attempt: Attempt, outcome: Outcome, error: Error): void {
    this.#options.onError(error)
    // The worker gave up on an unreachable database, or on a release or parking, which can't be written in another form. Nothing is
    // wrong with the outcome, and the reaper revives the job.
    const isLast = outcome.move === 'release' || (outcome.move === 'retry' && outcome.parked !== undefined)
    if (isLast || isPassing(error)) {
      this.#wrote(attempt, outcome, 'lease_lost')
      return
    }
    attempt.refused ??= outcome
    const isUnwritable = outcome.move === 'fail' || isFileError(error)
    const isOptional = attempt.stage.optional === true && !attempt.row.is_part
    this.#write(
      attempt,
      isUnwritable ? parkedOf(attempt.refused, error) : failureOf(attempt.stage.name, isOptional, error),
    )
  }
}
