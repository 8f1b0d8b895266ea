import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import type { WatchOptions } from '../events/watch.ts'
import { pause } from '../service/service.ts'

/** Where to start in the event log: after a position, or this many events before its end. */
export type Position = { after: number } | { back: number }

const againMs = 500
// more than can arrive before the first read, and few enough to read at once
const mostAtStart = 1_000

/** The current end of the event log. */
export async function currentPosition(hf: Holdfast): Promise<Position> {
  for await (const { seq } of hf.events.watch({ back: 1, items: true, follow: false })) return { after: seq }
  return { back: mostAtStart } // the log is empty, so everything in it later is new
}

/** What to follow. If the database can't be reached, `onError` is called; unless it throws, following continues where it was. */
export interface FollowOptions
  extends Pick<WatchOptions, 'types' | 'tenant' | 'job' | 'items' | 'mostBehind' | 'onSkipped'> {
  from: Position
  signal: AbortSignal
  onError: (error: unknown) => void
}

/** The events after a position, and new ones as they arrive, until the signal fires. None is missed if the database is down for a while. */
export async function* follow(hf: Holdfast, options: FollowOptions): AsyncGenerator<LogEvent> {
  const { from: start, signal, onError, ...what } = options
  for (let from = start; !signal.aborted; ) {
    try {
      for await (const event of hf.events.watch({ ...what, ...from, signal })) {
        from = { after: event.seq }
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      onError(error)
      await pause(againMs, signal)
    }
  }
}
