/**
 * Watches the clock of the database by the monotonic one of this process. Leases are times of that clock: if somebody sets it, as a
 * machine does that learns the right time after its start, all leases seem to have run out, or to last for hours. After that, a session
 * is judged only once it had the time to renew its lease.
 */

/** One look at the clock: what it said, and when it was asked and heard, by the clock of this process. */
export interface Reading {
  nowMs: number
  askedMs: number
  heardMs: number
}

/** How far the clock must have been set to be noticed. Machines that keep their time in order never set it that far. */
const leastStepMs = 1_000

/** The clock of the database, as far as this process has watched it. */
export class DatabaseClock {
  /** How far ahead of ours it is, at least and at most. */
  #ahead: { least: number; most: number } | undefined
  #steppedAtMs = Number.NEGATIVE_INFINITY
  #watchedFromMs = Number.POSITIVE_INFINITY

  /** Notes a look. Answers by how much the clock was set since the last one: 0 if it was not. */
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

  /** How long it has not been set, as far as we know: forever, if we never saw it. */
  steadyMs(atMs: number): number {
    return atMs - this.#steppedAtMs
  }

  /** How long we have seen that it was not set. */
  watchedMs(atMs: number): number {
    return Math.max(0, atMs - this.#watchedFromMs)
  }
}
