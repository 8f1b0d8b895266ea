import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import type { Service } from '../service/service.ts'
import { makeLines, type StagesOf } from './event-lines.ts'
import { currentPosition, follow, type Position } from './follow.ts'
import { paint } from './terminal.ts'

/** The live view of a database: one line for each event. */
export interface Feed extends Service {
  /** Prints the remaining events. */
  flush(): Promise<void>
}

/** What a feed needs. */
export interface FeedOptions {
  hf: Holdfast
  stagesOf: StagesOf
  tell: (line: string) => void
  onError: (error: unknown) => void
}

const mostLines = 200
// another client's open transaction can hold back the last events, and must not delay the end
const flushMs = 3_000

/** Makes a feed of the events that happen after its start. */
export function makeFeed({ hf, stagesOf, tell, onError }: FeedOptions): Feed {
  const lines = makeLines(stagesOf)
  const ending = new AbortController()
  let position: Position | undefined
  let running: Promise<void> | undefined

  async function show(event: LogEvent): Promise<void> {
    tell(await lines.of(event))
    position = { after: event.seq }
  }

  function skip(count: number): void {
    tell(paint('dim', `… ${count} more events not shown`))
    position = position && 'after' in position ? { after: position.after + count } : undefined
  }

  async function look(from: Position): Promise<void> {
    const how = { from, items: true, signal: ending.signal, onError, mostBehind: mostLines, onSkipped: skip }
    for await (const event of follow(hf, how)) await show(event)
  }

  async function flush(): Promise<void> {
    if (!position) return
    let count = 0
    for await (const event of hf.events.watch({
      ...position,
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
      position = await currentPosition(hf)
      running = look(position).catch(onError)
    },
    async stop() {
      ending.abort()
      await running
    },
    flush,
  }
}
