import { HoldfastError } from '../errors/errors.ts'
import type { Attempt } from './attempt.ts'
import type { WorkerObserver } from './observer.ts'
import type { Session } from './session.ts'
import type { UnresponsiveHandler } from './vitals.ts'

/** What it takes to keep track of handlers that ignore their signal. */
export interface UnresponsiveOptions {
  session: Session
  observer: Pick<WorkerObserver, 'unresponsive' | 'returned'>
  /** The `maxUnresponsive` setting. */
  most: number
  /** So many handlers ignore their signal that this process should be replaced. Called once. */
  onTooMany: (error: HoldfastError) => void
}

/** How many of them the session row names. */
const mostShown = 20

/**
 * Handlers that were aborted and didn't return within the grace period. Their slots are free and their outcomes
 * decided, but they still use memory, connections and perhaps a CPU, so they are counted until they return.
 */
export class Unresponsive {
  readonly #options: UnresponsiveOptions
  readonly #handlers = new Map<Attempt, UnresponsiveHandler>()
  #wereTooMany = false

  constructor(options: UnresponsiveOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#handlers.size
  }

  add(attempt: Attempt, nowMs: number): void {
    this.#handlers.set(attempt, {
      id: attempt.fence.id,
      attempt: attempt.fence.attempt,
      kind: attempt.job.kind,
      stage: attempt.stage.name,
      reason: attempt.abortedBy ?? 'timeout',
      since: new Date(Date.now() - (nowMs - attempt.abortedAtMs)).toISOString(),
    })
    this.#options.observer.unresponsive(attempt, this.size)
    this.announce()
    if (this.size >= this.#options.most) this.#tooMany()
  }

  /** Stops counting a handler that has returned after all. */
  remove(attempt: Attempt): void {
    if (!this.#handlers.delete(attempt)) return
    this.#options.observer.returned(attempt, this.size)
    this.announce()
  }

  /** Tells the heartbeat thread what to write into the session row. */
  announce(): void {
    this.#options.session.tell({ unresponsive: [...this.#handlers.values()].slice(0, mostShown) })
  }

  #tooMany(): void {
    if (this.#wereTooMany) return
    this.#wereTooMany = true
    const { most, onTooMany } = this.#options
    const message = `${this.size} handlers ignored their abort signal and are still running (setting maxUnresponsive: ${most}). This worker drains and claims no more jobs. Replace its process.`
    onTooMany(new HoldfastError('handlers_unresponsive', message))
  }
}
