import type { Outcome, Settled } from '../settle/outcome.ts'
import { failureOf, parkedOf } from '../settle/park.ts'
import type { Settler } from '../settle/settle.ts'
import { isPassing } from '../store/connection.ts'
import type { HeldFence } from '../job/id.ts'
import { type Attempt, heldFenceOf } from './attempt.ts'
import type { ClaimedRow } from './lot.ts'
import type { Reports } from './report.ts'
import { endAttempt } from './span.ts'

/** What it takes to settle attempts. */
export interface SettlingOptions {
  settler: Settler
  reports: Reports
  onSettled: (attempt: Attempt, outcome: Outcome) => void
  /** One less is on its way. */
  onWritten: () => void
  onTrouble: (error: unknown) => void
}

/** Attempts that are over and still held in the database: their outcomes are on their way. */
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

  settle(attempt: Attempt, outcome: Outcome): void {
    this.#fences.add(attempt.fence)
    const reported = this.#options.reports.flushFor(attempt)
    if (reported) void reported.then(() => this.#write(attempt, outcome))
    else this.#write(attempt, outcome)
  }

  /** Gives jobs back that were never started. */
  giveBack(rows: ClaimedRow[]): void {
    const { settler, onTrouble } = this.#options
    for (const row of rows) {
      const fence = heldFenceOf(row)
      this.#fences.add(fence)
      const released = settler.settle({ fence, outcome: { move: 'release' } }).catch(onTrouble)
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
   * Postgres does not take the outcome. Trying again would not help, so the attempt fails with the reason; and if no ending is taken at all,
   * the job waits with its outcome, for its work is done and must not be done again.
   */
  #refused(attempt: Attempt, outcome: Outcome, error: Error): void {
    this.#options.onTrouble(error)
    // a worker that gave up on an unreachable database knows nothing against the outcome: the reaper will give it another try
    if (isPassing(error)) {
      this.#wrote(attempt, outcome, 'lease_lost')
      return
    }
    attempt.refused ??= outcome
    const isOptional = attempt.stage.optional === true && !attempt.row.is_part
    this.#write(
      attempt,
      outcome.move === 'fail' ? parkedOf(attempt.refused, error) : failureOf(attempt.stage.name, isOptional, error),
    )
  }
}
