import type { Attempt } from './attempt.ts'
import type { UnresponsiveHandler } from './vitals.ts'

/** Who is told of handlers that ignore their signal. */
export interface UnresponsiveOptions {
  onGivenUp: (attempt: Attempt) => void
  /** One of them has returned after all. */
  onReturned: (attempt: Attempt) => void
}

/**
 * Handlers that were told to end and did not within the grace. Their place is free and their outcome decided, but they still run: they
 * keep memory, connections and perhaps a processor, so they are counted until they return.
 */
export class Unresponsive {
  readonly #handlers = new Map<Attempt, UnresponsiveHandler>()
  readonly #options: UnresponsiveOptions

  constructor(options: UnresponsiveOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#handlers.size
  }

  /** The first of them, with what there is to tell. */
  first(most: number): UnresponsiveHandler[] {
    return [...this.#handlers.values()].slice(0, most)
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
    this.#options.onGivenUp(attempt)
  }

  /** A handler returned that nobody waits for; it counts no more. */
  remove(attempt: Attempt): void {
    if (this.#handlers.delete(attempt)) this.#options.onReturned(attempt)
  }
}
