/**
 * Live events for any number of listeners. One reader of the log serves all of them, so an idle listener costs a socket and no query.
 *
 * A listener that reconnects names the last event that it received. It first joins the reader, which buffers new events for it; then it gets
 * the events it missed, up to the position at which it joined; then the buffered ones. That position must be safe: a row below it that
 * commits later would be skipped for good. While no safe position is known, the listener reads the log on its own.
 */
import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import { pause } from '../service/service.ts'
import { Inbox } from './live-inbox.ts'

/** Which events a listener wants. */
export interface LiveFilter {
  types: ReadonlySet<string> | null
  tenant: string | undefined
  job: string | undefined
  /** Whether to include events of the items of fan-outs. */
  items: boolean
}

/** The events for a listener. */
export interface Heard {
  events: AsyncGenerator<LogEvent>
  /** Where they begin. A client that reconnects with this position has missed nothing, even if it received no event. */
  from: number
}

/** What events are read from, and how errors are reported. */
interface Source {
  engine: () => Holdfast
  onError: (error: unknown) => void
}

/** One poll of one server serves all its listeners. */
const pollMs = 100
const errorPauseMs = 500

/** Sends events to listeners. Reads the log only while there are any. */
export class Live {
  readonly #source: Source
  #reader: Reader | undefined

  constructor(engine: () => Holdfast, onError: (error: unknown) => void) {
    this.#source = { engine, onError }
  }

  /** The matching events after a position in the log, or from now on, until the signal fires. Resolves once none can be missed. */
  async listen(filter: LiveFilter, after: number | null, signal: AbortSignal): Promise<Heard> {
    const inbox = new Inbox(filter, signal)
    const reader = await this.#join(inbox)
    const joinedAt = reader.safeAt
    // the caller may fail before it reads the first event, and a generator that never ran would not clean up
    const leave = () => this.#leave(reader, inbox)
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    const events = this.#follow({ filter, inbox, after, joinedAt, signal, leave })
    return { events, from: after ?? reader.at }
  }

  listeners(): number {
    return this.#reader?.inboxes.size ?? 0
  }

  async stop(): Promise<void> {
    await this.#reader?.stop()
  }

  async #join(inbox: Inbox): Promise<Reader> {
    this.#reader ??= new Reader(this.#source)
    const reader = this.#reader
    reader.inboxes.add(inbox)
    try {
      await reader.started
    } catch (error) {
      if (this.#reader === reader) this.#reader = undefined
      this.#leave(reader, inbox)
      throw error
    }
    return reader
  }

  #leave(reader: Reader, inbox: Inbox): void {
    reader.inboxes.delete(inbox)
    if (reader.inboxes.size > 0) return
    void reader.stop()
    if (this.#reader === reader) this.#reader = undefined
  }

  async *#follow({ filter, inbox, after, joinedAt, signal, leave }: Following): AsyncGenerator<LogEvent> {
    const watch = (how: { after: number; follow?: false }) =>
      this.#source.engine().events.watch({ ...watchOf(filter), ...how, signal })
    try {
      if (after !== null && joinedAt === null) {
        leave()
        yield* watch({ after })
        return
      }
      if (after !== null && joinedAt !== null && after < joinedAt)
        for await (const missed of watch({ after, follow: false })) {
          if (missed.seq > joinedAt) break
          yield missed
        }
      yield* inbox.events()
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }
}

/** A listener that has joined the reader. */
interface Following {
  filter: LiveFilter
  inbox: Inbox
  after: number | null
  /** The safe position of the reader when the listener joined; null if none was known. */
  joinedAt: number | null
  signal: AbortSignal
  leave: () => void
}

/** Reads the log for all listeners. Each reader has its own: what one that is stopping still reads must not reach those of the next. */
class Reader {
  readonly inboxes = new Set<Inbox>()
  readonly started: Promise<void>
  /** Everything after this position is still to be sent. */
  at = 0
  /** Everything up to this position was sent, and nothing below it can still appear; null while that is unknown. */
  safeAt: number | null = null
  readonly #source: Source
  readonly #ending = new AbortController()
  readonly #done: Promise<void>

  constructor(source: Source) {
    this.#source = source
    this.started = this.#findEnd()
    this.#done = this.started.then(
      () => this.#read(),
      () => {},
    )
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#done
  }

  async #findEnd(): Promise<void> {
    const { seq, isSafe } = await this.#source.engine().events.end()
    this.at = seq
    this.safeAt = isSafe ? seq : null
  }

  async #read(): Promise<void> {
    const { signal } = this.#ending
    while (!signal.aborted) {
      try {
        const events = this.#source.engine().events.watch({ after: this.at, items: true, signal, pollMs })
        for await (const event of events) this.#send(event)
      } catch (error) {
        this.#source.onError(error)
        await pause(errorPauseMs, signal)
      }
    }
  }

  #send(event: LogEvent): void {
    this.at = event.seq
    this.safeAt = event.seq
    for (const inbox of this.inboxes) inbox.push(event)
  }
}

function watchOf({ types, tenant, job, items }: LiveFilter) {
  return {
    items,
    ...(types === null ? {} : { types: [...types] }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(job === undefined ? {} : { job }),
  }
}
