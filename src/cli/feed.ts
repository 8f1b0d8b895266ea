import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import type { Service } from '../service/service.ts'
import { makeLines, type StagesOf } from './event-lines.ts'
import { follow, type Place, placeOfNow } from './follow.ts'
import { paint } from './terminal.ts'

/** The live view of a database: one line for each event. */
export interface Feed extends Service {
  /** Tells what is left to tell. */
  flush(): Promise<void>
}

/** What a feed needs. */
export interface FeedOptions {
  hf: Holdfast
  stagesOf: StagesOf
  tell: (line: string) => void
  onTrouble: (error: unknown) => void
}

const mostLines = 200
// what a transaction of somebody else still holds back must not hold up the end
const flushMs = 3_000

/** Makes a feed. It begins with what happens after its start. */
export function makeFeed({ hf, stagesOf, tell, onTrouble }: FeedOptions): Feed {
  const lines = makeLines(stagesOf)
  const ending = new AbortController()
  let place: Place | undefined
  let running: Promise<void> | undefined

  async function show(event: LogEvent): Promise<void> {
    tell(await lines.of(event))
    place = { after: event.seq }
  }

  function skip(count: number): void {
    tell(paint('dim', `… ${count} more events, too many to show`))
    place = place && 'after' in place ? { after: place.after + count } : undefined
  }

  async function look(from: Place): Promise<void> {
    const how = { from, items: true, signal: ending.signal, onTrouble, mostBehind: mostLines, onSkipped: skip }
    for await (const event of follow(hf, how)) await show(event)
  }

  async function flush(): Promise<void> {
    if (!place) return
    let count = 0
    for await (const event of hf.events.watch({
      ...place,
      items: true,
      follow: false,
      signal: AbortSignal.timeout(flushMs),
    })) {
      count += 1
      if (count <= mostLines) await show(event)
    }
    if (count > mostLines) skip(count - mostLines)
  }

  return {
    async start() {
      if (running) return
      place = await placeOfNow(hf)
      running = look(place).catch(onTrouble)
    },
    async stop() {
      ending.abort()
      await running
    },
    flush,
  }
}
