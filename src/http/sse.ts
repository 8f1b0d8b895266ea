import type { LogEvent } from '../events/event.ts'

const encoder = new TextEncoder()
const pingMs = 15_000

/** What is streamed. */
interface Streaming {
  events: AsyncGenerator<LogEvent>
  show(event: LogEvent): Promise<object>
  /** Told when it is over, whoever ended it; must end the events, too. */
  onEnd(): void
}

/** Server-sent events. A comment now and then keeps idle connections open, and tells a dead one from a quiet one. */
export function stream({ events, show, onEnd }: Streaming): Response {
  let ping: NodeJS.Timeout | undefined
  let room: () => void = () => {}
  let isGone = false
  const end = () => {
    clearInterval(ping)
    onEnd()
    room()
  }

  async function write(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      for await (const event of events) {
        const shown = (await show(event)) as { id: string }
        controller.enqueue(encoder.encode(`id: ${shown.id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`))
        // a client that reads slowly is not written ahead of; what comes meanwhile is held for it, up to a limit
        if ((controller.desiredSize ?? 0) <= 0)
          await new Promise<void>((resolve) => {
            room = resolve
          })
      }
    } finally {
      end()
    }
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode('retry: 1000\n\n'))
        ping = setInterval(
          () => (controller.desiredSize ?? 0) > 0 && controller.enqueue(encoder.encode(': still here\n\n')),
          pingMs,
        )
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
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  })
}
