import type { LogEvent } from '../events/event.ts'
import type { LiveFilter } from './live.ts'

const mostHeld = 10_000

/** Events that a listener has yet to receive. A listener that reads too slowly is disconnected; it reconnects and reads what it missed. */
export class Inbox {
  readonly #filter: LiveFilter
  #held: LogEvent[] = []
  #isOver: boolean
  #wake = () => {}

  constructor(filter: LiveFilter, signal: AbortSignal) {
    this.#filter = filter
    this.#isOver = signal.aborted
    signal.addEventListener('abort', () => this.#end(), { once: true })
  }

  /** Adds an event, if the listener wants it. */
  push(event: LogEvent): void {
    if (this.#isOver || !this.#isWanted(event)) return
    if (this.#held.length >= mostHeld) return void this.#end()
    this.#held.push(event)
    this.#wake()
  }

  /** The events as they arrive, until the signal fires or too many are waiting. */
  async *events(): AsyncGenerator<LogEvent> {
    while (!this.#isOver) {
      const now = this.#held
      this.#held = []
      yield* now
      if (this.#held.length === 0 && !this.#isOver)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  #isWanted({ type, tenant, jobId, item }: LogEvent): boolean {
    const { types, tenant: owner, job, items } = this.#filter
    return (
      (types === null || types.has(type)) &&
      (owner === undefined || owner === tenant) &&
      (job === undefined ? items || item === null : job === jobId)
    )
  }

  #end(): void {
    this.#isOver = true
    this.#wake()
  }
}
