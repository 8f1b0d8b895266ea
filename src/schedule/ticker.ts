/**
 * The ticker. Every process that runs a reaper has one, not only the leader: a slot must not wait for an election. The leader ticks at the
 * slot; the others a moment later, if the slot is still there. Rows decide, so it doesn't matter who ticks, or how many.
 *
 * It sleeps until the next slot, by the clock of the database, but never for longer than a second: a schedule may be set at any time.
 *
 * Slots that have been due for a minute are late anyway: their row was locked, or nothing was running. A loop of its own decides them, so that
 * thousands of them don't hold up those that come due. The other loop never reads the index before the last minute, where ticks leave dead
 * entries, which nobody can remove while another transaction stays open.
 */
import { randomInt } from 'node:crypto'
import { type Store, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service, within } from '../service/service.ts'
import { type LookRow, lookAtSchedules } from './tick.sql.ts'
import { type Round, releaseDue, tickDue } from './tick.ts'
import { forgetReplaced, replacedJobs } from './unfinished.sql.ts'

/** How much later than the leader the others tick. */
export const followerLagMs = { least: 150, most: 400 }
const longestSleepMs = 1_000
/** While a due row is locked by another transaction. */
const lockedSleepMs = 100
/** From when on a slot is left to the loop for late ones, and how often that looks. */
const lateMs = 60_000
const everyLateMs = 10_000
/** How many batches are decided before the next look, which also finds what else there is to do. */
const mostRounds = 20
/** How long to do nothing unless woken: a look finds what there is to do. */
const idleMs = 60_000
const besidesMs = 250
/** How many replaced jobs are cancelled at a time. One whose row is locked takes long, and must not hold up the others. */
const mostCancels = 200
/** How long a process that starts waits until its schedules are declared. A locked row must not keep it from starting. */
const declareMs = 5_000

/** What happens in a ticker, for logs and metrics. */
export interface TickerObserver {
  ticked(round: Round): void
  onError(error: unknown): void
}

/** What a ticker needs. */
export interface TickerOptions {
  store: Store
  missedAfterMs: number
  isLeader: () => boolean
  /** Cancels a job that a later slot replaced. Resolves if the job has ended, or is gone. */
  cancel: (replaced: { jobId: string; tenant: string; schedule: string }) => Promise<void>
  /** Writes the schedules that the kinds of this process declare. Tried again until it succeeds. */
  declare?: (signal: AbortSignal) => Promise<void>
  observer: TickerObserver
}

/** Decides the slots of schedules as they come due. */
export class Ticker implements Service {
  readonly #options: TickerOptions
  readonly #store: Store
  readonly #ticks: Loop
  readonly #lateTicks: Loop
  /** Buffered slots, declarations and cancels. Each has a loop of its own, because it may wait for locked rows, and no slot must wait for it. */
  readonly #releases: Loop
  readonly #declares: Loop
  readonly #cancels: Loop
  /** The cancels that are under way, by job. */
  readonly #cancelling = new Map<string, Promise<void>>()
  /** When they were last woken. */
  #wokenMs = Number.NEGATIVE_INFINITY
  #isDeclared: boolean
  /** Resolves once it has tried to declare its schedules. */
  readonly #tried: Promise<void>
  #noteTried = () => {}
  readonly #lagMs = randomInt(followerLagMs.least, followerLagMs.most + 1)

  constructor(options: TickerOptions) {
    this.#options = options
    this.#isDeclared = options.declare === undefined
    this.#tried = new Promise((resolve) => {
      this.#noteTried = resolve
    })
    const onError = (error: unknown) => options.observer.onError(error)
    this.#ticks = loop({ turn: (signal) => this.#tick(signal), onError, errorPauseMs: lockedSleepMs })
    const errorPauseMs = longestSleepMs
    this.#lateTicks = loop({ turn: (signal) => this.#tickLate(signal), onError, errorPauseMs })
    this.#releases = loop({ turn: () => this.#release(), onError, errorPauseMs })
    this.#declares = loop({ turn: (signal) => this.#declare(signal), onError, errorPauseMs })
    this.#cancels = loop({ turn: () => this.#cancelReplaced(), onError, errorPauseMs })
    this.#store = tellingRunner(options.store, () => this.#ticks.beat())
  }

  /** Resolves once its schedules are declared, or that has failed or taken too long; then it is tried again. */
  async start(): Promise<void> {
    for (const one of this.#loops()) await one.start()
    await within(declareMs, this.#tried)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops().map((one) => one.stop()))
    await Promise.all(this.#cancelling.values())
  }

  #loops(): Loop[] {
    return [this.#ticks, this.#lateTicks, this.#releases, this.#declares, this.#cancels]
  }

  /** How long its loop has shown no sign of life. */
  quietMs(): number {
    return this.#ticks.quietMs()
  }

  async #tick(signal: AbortSignal): Promise<number> {
    const [look] = await this.#store.run(lookAtSchedules, { withinMs: lateMs })
    if (look) this.#wakeBesides(look)
    if (look?.next_ms == null) return longestSleepMs
    const lagMs = this.#options.isLeader() ? 0 : this.#lagMs
    if (look.next_ms + lagMs > 0) return Math.min(longestSleepMs, Math.ceil(look.next_ms + lagMs))
    return this.#tickAll(lagMs, signal)
  }

  /** While slots come due all the time, there are many looks a second. */
  #wakeBesides({ has_cancels, has_buffered }: LookRow): void {
    if (performance.now() < this.#wokenMs + besidesMs) return
    this.#wokenMs = performance.now()
    if (has_cancels) this.#cancels.wake()
    if (has_buffered) this.#releases.wake()
  }

  async #tickAll(lagMs: number, signal: AbortSignal): Promise<number> {
    const { missedAfterMs, observer } = this.#options
    for (let rounds = 0; rounds < mostRounds && !signal.aborted; rounds++) {
      const round = await tickDue(this.#store, { missedAfterMs, lagMs, withinMs: lateMs })
      observer.ticked(round)
      // what is due but was not found is locked by another transaction
      if (!round.isFull) return rounds > 0 && round.due === 0 ? 0 : lockedSleepMs
    }
    return 0
  }

  /** What can't be decided, or is locked, is tried again at the next turn. */
  async #tickLate(signal: AbortSignal): Promise<number> {
    const { store, missedAfterMs, observer } = this.#options
    for (let isFull = true; isFull && !signal.aborted; ) {
      const round = await tickDue(store, { missedAfterMs, lagMs: lateMs })
      if (round.due > 0) observer.ticked(round)
      isFull = round.isFull
    }
    return everyLateMs
  }

  async #release(): Promise<number> {
    const round = await releaseDue(this.#options.store)
    if (round.due > 0) this.#options.observer.ticked(round)
    return round.isFull ? 0 : idleMs
  }

  async #declare(signal: AbortSignal): Promise<number> {
    try {
      if (!this.#isDeclared) await this.#options.declare?.(signal)
      this.#isDeclared = true
      return idleMs
    } finally {
      this.#noteTried()
    }
  }

  /** Cancels what later slots replaced. It stays on the row until it is done, so a process that dies here leaves it to another. */
  async #cancelReplaced(): Promise<number> {
    const { store, cancel, observer } = this.#options
    for (const { tenant, name, job_id: jobId } of await store.run(replacedJobs, { limit: mostCancels })) {
      if (this.#cancelling.has(jobId) || this.#cancelling.size >= mostCancels) continue
      const cancelled = cancel({ jobId, tenant, schedule: name })
        .then(() => store.contend(forgetReplaced, { tenant, name, jobId }))
        .catch((error) => observer.onError(error))
        .finally(() => this.#cancelling.delete(jobId))
      this.#cancelling.set(jobId, cancelled as Promise<void>)
    }
    return idleMs
  }
}
