import type { Holdfast } from '../engine/engine.ts'
import type { WatchOptions } from '../engine/events.ts'
import type { LogEvent } from '../events/event.ts'
import { pause } from '../service/service.ts'

/** Where looking begins: behind a place in the log, or so many events before its end. */
export type Place = { after: number } | { back: number }

const againMs = 500
// more than come while somebody begins to look, and few enough to read at once
const mostAtStart = 1_000

/** The place behind which everything is yet to come. */
export async function placeOfNow(hf: Holdfast): Promise<Place> {
  for await (const { seq } of hf.events.watch({ back: 1, items: true, follow: false })) return { after: seq }
  return { back: mostAtStart } // the log is empty, so whatever is in it later has come since
}

/** What to follow, and what to do if the database cannot be asked; unless that throws, it goes on where it was. */
export interface FollowOptions
  extends Pick<WatchOptions, 'types' | 'tenant' | 'job' | 'items' | 'mostBehind' | 'onSkipped'> {
  from: Place
  signal: AbortSignal
  onTrouble: (error: unknown) => void
}

/** The events behind a place and all that come, until the signal fires. A database that is away for a while costs none. */
export async function* follow(hf: Holdfast, options: FollowOptions): AsyncGenerator<LogEvent> {
  const { from: start, signal, onTrouble, ...what } = options
  for (let from = start; !signal.aborted; ) {
    try {
      for await (const event of hf.events.watch({ ...what, ...from, signal })) {
        from = { after: event.seq }
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      onTrouble(error)
      await pause(againMs, signal)
    }
  }
}
