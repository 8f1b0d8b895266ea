import type { LogEvent } from '../events/event.ts'
import type { Reply } from './operation.ts'

const encoder = new TextEncoder()
const pingMs = 15_000

/** What is streamed. */
interface Streaming {
  events: AsyncGenerator<LogEvent>
  show(event: LogEvent): Promise<object>
  /** Where it begins, as a client names it when it comes back. */
  from: string
  /** Whether the client may still listen; asked before each event, and now and then. */
  isWelcome(): Promise<boolean>
  /** Told when it is over, whoever ended it; must end the events, too. */
  onEnd(): void
  /** How long a client may take nothing before it is let go. */
  stalledMs?: number
}

/** Server-sent events. A comment now and then keeps idle connections open, and tells a dead one from a quiet one. */
export function stream({ events, show, from, isWelcome, onEnd, stalledMs = 30_000 }: Streaming): Reply {
  let ping: NodeJS.Timeout | undefined
  let room: () => void = () => {}
  let isGone = false
  let isOver = false
  const end = () => {
    isOver = true
    clearInterval(ping)
    onEnd()
    room()
  }

  async function beat(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!(await isWelcome())) return end()
    if (!isOver && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': still here\n\n'))
  }

  async function write(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      for await (const event of events) {
        if (!(await isWelcome())) return
        const shown = (await show(event)) as { id: string }
        controller.enqueue(encoder.encode(`id: ${shown.id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`))
        // a client that reads slowly is not written ahead of; what comes meanwhile is held for it, up to a limit
        if ((controller.desiredSize ?? 0) <= 0) await takenIn()
      }
    } finally {
      end()
    }
  }

  /** Resolves once there is room again. A client that takes nothing at all would hold its place, and what waits for it, for ever. */
  async function takenIn(): Promise<void> {
    let late: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      room = resolve
      late = setTimeout(() => reject(new Error('The client takes nothing.')), stalledMs)
    }).finally(() => clearTimeout(late))
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // with a place from the start, so that who is cut off before the first event comes back to it, too
        controller.enqueue(encoder.encode(`retry: 1000\nid: ${from}\n\n`))
        ping = setInterval(() => void beat(controller), pingMs)
        write(controller).then(
          () => isGone || controller.close(),
          (error) => isGone || controller.error(error),
        )
      },
      pull: () => room(),
      cancel() {
        isGone = true
        end()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 65_536 }),
  )
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  return { status: 200, headers, body }
}
