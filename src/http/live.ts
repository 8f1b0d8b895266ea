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
}

/** Tells listeners of events. */
export interface Live {
  /** The events that fit, from behind a place in the log or from now on, until the signal fires. Answers once nothing can be missed. */
  listen(filter: LiveFilter, after: number | null, signal: AbortSignal): Promise<AsyncGenerator<LogEvent>>
  listeners(): number
  stop(): Promise<void>
}

interface Listener {
  push(event: LogEvent): void
}

const mostHeld = 10_000
/** One look of one server for all its listeners. */
const pollMs = 100

/** Makes the live view of an engine. It reads only while somebody listens. */
export function makeLive(engine: () => Holdfast, onTrouble: (error: unknown) => void): Live {
  const listeners = new Set<Listener>()
  /** Everything up to here was told, and nothing below it is still to come; null while nobody knows. */
  let safeAt: number | null = null
  let reading: { started: Promise<void>; stop: () => Promise<void> } | undefined

  function start(): { started: Promise<void>; stop: () => Promise<void> } {
    const ending = new AbortController()
    let at = 0
    const started = engine()
      .events.end()
      .then(({ seq, isSafe }) => {
        at = seq
        safeAt = isSafe ? seq : null
      })
    const done = started.then(
      () => read(),
      () => {},
    )

    async function read(): Promise<void> {
      while (!ending.signal.aborted) {
        try {
          for await (const event of engine().events.watch({ after: at, signal: ending.signal, pollMs })) {
            at = event.seq
            safeAt = event.seq
            for (const listener of listeners) listener.push(event)
          }
        } catch (error) {
          onTrouble(error)
          await pause(500, ending.signal)
        }
      }
    }

    return {
      started,
      stop: async () => {
        ending.abort()
        await done
      },
    }
  }

  async function join(listener: Listener): Promise<number | null> {
    reading ??= start()
    listeners.add(listener)
    try {
      await reading.started
    } catch (error) {
      reading = undefined
      listeners.delete(listener)
      throw error
    }
    return safeAt
  }

  function leave(listener: Listener): void {
    listeners.delete(listener)
    if (listeners.size > 0) return
    void reading?.stop()
    reading = undefined
    safeAt = null
  }

  return {
    async listen(filter, after, signal) {
      const inbox = makeInbox(filter, signal)
      const joinedAt = await join(inbox)
      return follow()

      async function* follow(): AsyncGenerator<LogEvent> {
        try {
          if (after !== null && joinedAt === null) {
            leave(inbox)
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
          leave(inbox)
        }
      }
    },
    listeners: () => listeners.size,
    stop: async () => {
      await reading?.stop()
    },
  }
}

function watchOf({ types, tenant, job }: LiveFilter) {
  return {
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
  const fits = ({ type, tenant, jobId }: LogEvent) =>
    (filter.types === null || filter.types.has(type)) &&
    (filter.tenant === undefined || filter.tenant === tenant) &&
    (filter.job === undefined || filter.job === jobId)
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
