/**
 * The ticker. Every process that runs a reaper has one, not only the leader: a slot must not wait for an election. The leader ticks at the
 * slot; the others a moment later, if the slot is still there. Rows decide, so it doesn't matter who ticks, or how many.
 *
 * It sleeps until the next slot, by the clock of the database, but never for longer than a second: a schedule may be set at any time.
 */
import { randomInt } from 'node:crypto'
import { type Store, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { lookAtSchedules, releaseBuffered } from './tick.sql.ts'
import { type Round, tickDue } from './tick.ts'
import { forgetReplaced, replacedJobs } from './unfinished.sql.ts'

/** How much later than the leader the others tick. */
export const followerLagMs = { least: 150, most: 400 }
const longestSleepMs = 1_000
/** While a due row is locked by another transaction. */
const lockedSleepMs = 100
const batchSize = 200

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
  declare?: () => Promise<void>
  observer: TickerObserver
}

/** Decides the slots of schedules as they come due. */
export class Ticker implements Service {
  readonly #options: TickerOptions
  readonly #store: Store
  readonly #ticks: Loop
  /** Declarations and cancels; on their own, because they may wait for locked rows. */
  readonly #chores: Loop
  #isDeclared: boolean
  readonly #lagMs = randomInt(followerLagMs.least, followerLagMs.most + 1)

  constructor(options: TickerOptions) {
    this.#options = options
    this.#isDeclared = options.declare === undefined
    const onError = (error: unknown) => options.observer.onError(error)
    this.#ticks = loop({ turn: (signal) => this.#tick(signal), onError, errorPauseMs: lockedSleepMs })
    this.#chores = loop({ turn: (signal) => this.#doChores(signal), onError, errorPauseMs: longestSleepMs })
    this.#store = tellingRunner(options.store, () => this.#ticks.beat())
  }

  /** Resolves once its schedules are declared, or that has failed once. */
  async start(): Promise<void> {
    await this.#declare().catch((error) => this.#options.observer.onError(error))
    await this.#ticks.start()
    await this.#chores.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#ticks.stop(), this.#chores.stop()])
  }

  /** How long its loop has shown no sign of life. */
  quietMs(): number {
    return this.#ticks.quietMs()
  }

  async #tick(signal: AbortSignal): Promise<number> {
    const [look] = await this.#store.run(lookAtSchedules, {})
    if (look?.has_cancels) this.#chores.wake()
    if (look?.has_buffered) await this.#release()
    if (look?.next_ms == null) return longestSleepMs
    const lagMs = this.#options.isLeader() ? 0 : this.#lagMs
    if (look.next_ms + lagMs > 0) return Math.min(longestSleepMs, Math.ceil(look.next_ms + lagMs))
    return this.#tickAll(lagMs, signal)
  }

  async #tickAll(lagMs: number, signal: AbortSignal): Promise<number> {
    const { missedAfterMs, observer } = this.#options
    for (let rounds = 0; !signal.aborted; rounds++) {
      const round = await tickDue(this.#store, { missedAfterMs, lagMs })
      observer.ticked(round)
      // what is due but was not found is locked by another transaction
      if (!round.isFull) return rounds > 0 && round.due === 0 ? 0 : lockedSleepMs
    }
    return 0
  }

  async #release(): Promise<void> {
    const ticked = await this.#store.run(releaseBuffered, { limit: batchSize })
    if (ticked.length > 0) this.#options.observer.ticked({ ticked, failed: [], due: ticked.length, isFull: false })
  }

  async #declare(): Promise<void> {
    if (this.#isDeclared) return
    await this.#options.declare?.()
    this.#isDeclared = true
  }

  async #doChores(signal: AbortSignal): Promise<number> {
    await this.#declare()
    await this.#cancelReplaced(signal)
    return longestSleepMs
  }

  /** Cancels what later slots replaced. It stays on the row until it is done, so a process that dies here leaves it to another. */
  async #cancelReplaced(signal: AbortSignal): Promise<void> {
    const { store, cancel, observer } = this.#options
    for (const { tenant, name, job_id: jobId } of await store.run(replacedJobs, { limit: batchSize })) {
      if (signal.aborted) break
      await cancel({ jobId, tenant, schedule: name })
        .then(() => store.run(forgetReplaced, { tenant, name, jobId }))
        .catch((error) => observer.onError(error))
    }
  }
}
