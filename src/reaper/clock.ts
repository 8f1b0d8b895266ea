/**
 * Compares the clock of the database with the monotonic clock of this process. Leases are times on the database clock. If someone sets it,
 * as a machine does that learns the right time after booting, all leases seem to have run out, or to last for hours. After that, a session is
 * judged only once it has had time to renew its lease. The same holds after a period in which no session or lease could be written to, and for
 * attempts whose deadline has passed: their outcomes may be on their way.
 */

/** One reading: what the database clock said, and when this process asked and got the answer by its own clock. */
export interface Reading {
  nowMs: number
  askedMs: number
  heardMs: number
}

/** The smallest change that counts as setting the clock. Machines that synchronize their clocks never step that far. */
const leastStepMs = 1_000

/** What this process knows about the clock of the database. */
export class DatabaseClock {
  /** How far it is ahead of ours, at least and at most. */
  #ahead: { least: number; most: number } | undefined
  #steppedAtMs = Number.NEGATIVE_INFINITY
  #heldUpUntilMs = Number.NEGATIVE_INFINITY
  #watchedFromMs = Number.POSITIVE_INFINITY

  /** Notes a reading. Returns by how much the clock was set since the last one; 0 if it was not. */
  note({ nowMs, askedMs, heardMs }: Reading): number {
    const ahead = { least: nowMs - heardMs, most: nowMs - askedMs }
    const last = this.#ahead ?? ahead
    const stepMs = Math.max(0, ahead.least - last.most) + Math.min(0, ahead.most - last.least)
    const isStep = Math.abs(stepMs) >= leastStepMs
    if (isStep) this.#steppedAtMs = heardMs
    if (!this.#ahead || isStep) this.#watchedFromMs = heardMs
    this.#ahead = ahead
    return isStep ? stepMs : 0
  }

  /** Notes that sessions or leases could not be written to until then, although the clock kept running. */
  noteHeldUp(atMs: number): void {
    this.#heldUpUntilMs = atMs
  }

  /** For how long sessions and leases could be written to and the clock was not set, as far as we know; infinite if we never saw otherwise. */
  steadyMs(atMs: number): number {
    return atMs - Math.max(this.#steppedAtMs, this.#heldUpUntilMs)
  }

  /** For how long we have watched the clock and it was not set. */
  watchedMs(atMs: number): number {
    return Math.max(0, atMs - this.#watchedFromMs)
  }
}
