/**
 * Events as they happen, for however many listeners: one reader of the log tells all of them, so an idle listener costs a socket and no query.
 *
 * A listener that comes back names the last event that it got. It is joined to the reader first, which holds back what comes; then it is sent what it has
 * missed, up to the place where the reader stood; then what was held back. That place must be safe: a row below it that commits later would be skipped for
 * ever. Where that is not known yet, the listener reads by itself.
 */
import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import { pause } from '../service/service.ts'

/** Which events a listener wants. */
export interface LiveFilter {
  types: ReadonlySet<string> | null
  tenant: string | undefined
  job: string | undefined
  /** Whether also those of the items of fan-outs. */
  items: boolean
}

/** What a listener is told. */
export interface Told {
  events: AsyncGenerator<LogEvent>
  /** Where it begins: who comes back with this place has missed nothing, even if no event was told. */
  from: number
}

/** Tells listeners of events. */
export interface Live {
  /** The events that fit, from behind a place in the log or from now on, until the signal fires. Answers once nothing can be missed. */
  listen(filter: LiveFilter, after: number | null, signal: AbortSignal): Promise<Told>
  listeners(): number
  stop(): Promise<void>
}

interface Listener {
  push(event: LogEvent): void
}

/** The one that reads for all. Its listeners are its own: what one that ends still reads must not reach those of the next. */
interface Reader {
  listeners: Set<Listener>
  /** Everything behind this place is still to be told. */
  at: number
  /** Everything up to here was told, and nothing below it is still to come; null while nobody knows. */
  safeAt: number | null
  started: Promise<void>
  stop(): Promise<void>
}

const mostHeld = 10_000
/** One look of one server for all its listeners. */
const pollMs = 100

/** Makes the live view of an engine. It reads only while somebody listens. */
export function makeLive(engine: () => Holdfast, onTrouble: (error: unknown) => void): Live {
  let reading: Reader | undefined

  function start(): Reader {
    const ending = new AbortController()
    const started = engine()
      .events.end()
      .then(({ seq, isSafe }) => {
        reader.at = seq
        reader.safeAt = isSafe ? seq : null
      })
    const done = started.then(
      () => read(),
      () => {},
    )
    const stop = async () => {
      ending.abort()
      await done
    }
    const reader: Reader = { listeners: new Set(), at: 0, safeAt: null, started, stop }

    async function read(): Promise<void> {
      while (!ending.signal.aborted) {
        try {
          for await (const event of engine().events.watch({
            after: reader.at,
            items: true,
            signal: ending.signal,
            pollMs,
          })) {
            reader.at = event.seq
            reader.safeAt = event.seq
            for (const listener of reader.listeners) listener.push(event)
          }
        } catch (error) {
          onTrouble(error)
          await pause(500, ending.signal)
        }
      }
    }

    return reader
  }

  async function join(listener: Listener): Promise<Reader> {
    reading ??= start()
    const reader = reading
    reader.listeners.add(listener)
    try {
      await reader.started
    } catch (error) {
      if (reading === reader) reading = undefined
      leave(reader, listener)
      throw error
    }
    return reader
  }

  function leave(reader: Reader, listener: Listener): void {
    reader.listeners.delete(listener)
    if (reader.listeners.size > 0) return
    void reader.stop()
    if (reading === reader) reading = undefined
  }

  return {
    async listen(filter, after, signal) {
      const inbox = makeInbox(filter, signal)
      const reader = await join(inbox)
      const joinedAt = reader.safeAt
      // whoever asked may fail before it reads its first event, and then nothing would ever end what was never begun
      const left = () => leave(reader, inbox)
      signal.addEventListener('abort', left, { once: true })
      if (signal.aborted) left()
      return { events: follow(), from: after ?? reader.at }

      async function* follow(): AsyncGenerator<LogEvent> {
        try {
          if (after !== null && joinedAt === null) {
            leave(reader, inbox)
            yield* engine().events.watch({ ...watchOf(filter), after, signal })
            return
          }
          if (after !== null && after < (joinedAt as number))
            for await (const missed of engine().events.watch({ ...watchOf(filter), after, follow: false, signal })) {
              if (missed.seq > (joinedAt as number)) break
              yield missed
            }
          yield* inbox.events()
        } finally {
          signal.removeEventListener('abort', left)
          left()
        }
      }
    },
    listeners: () => reading?.listeners.size ?? 0,
    stop: async () => {
      await reading?.stop()
    },
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

/** What a listener has still to be sent. One that reads too slowly is let go: it comes back and reads what it missed. */
function makeInbox(filter: LiveFilter, signal: AbortSignal): Listener & { events(): AsyncGenerator<LogEvent> } {
  let held: LogEvent[] = []
  let isOver = signal.aborted
  let wake = () => {}
  const fits = ({ type, tenant, jobId, item }: LogEvent) =>
    (filter.types === null || filter.types.has(type)) &&
    (filter.tenant === undefined || filter.tenant === tenant) &&
    (filter.job === undefined ? filter.items || item === null : filter.job === jobId)
  const end = () => {
    isOver = true
    wake()
  }
  signal.addEventListener('abort', end, { once: true })
  return {
    push(event) {
      if (isOver || !fits(event)) return
      if (held.length >= mostHeld) return end()
      held.push(event)
      wake()
    },
    async *events() {
      while (!isOver) {
        const now = held
        held = []
        yield* now
        if (held.length === 0 && !isOver)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    },
  }
}
