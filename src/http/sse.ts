import type { LogEvent } from '../events/event.ts'
import type { Reply } from './operation.ts'

const encoder = new TextEncoder()
const pingMs = 15_000
const bufferBytes = 65_536

/** What is streamed. */
interface Streaming {
  events: AsyncGenerator<LogEvent>
  show(event: LogEvent): Promise<object>
  /** Where the stream begins, as a client names it when it reconnects. */
  from: string
  /** Whether the client may still listen. Checked before each event, and periodically. */
  isWelcome(): Promise<boolean>
  /** Called when the stream is over, whichever side ended it. It must also end the events. */
  onEnd(): void
  /** How long a client may read nothing before it is disconnected. */
  stalledMs: number
}

/** Streams events as server-sent events. */
export function stream(streaming: Streaming): Reply {
  const body = new ReadableStream<Uint8Array>(
    new EventStream(streaming),
    new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }),
  )
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  return { status: 200, headers, body }
}

type Controller = ReadableStreamDefaultController<Uint8Array>

/** The source of one stream. A comment now and then keeps idle connections open, and reveals dead ones. */
class EventStream {
  readonly #streaming: Streaming
  #ping: NodeJS.Timeout | undefined
  #onRoom: () => void = () => {}
  #isGone = false
  #isOver = false

  constructor(streaming: Streaming) {
    this.#streaming = streaming
  }

  start(controller: Controller): void {
    // with an id from the start, so that a client that is cut off before the first event can resume as well
    send(controller, `retry: 1000\nid: ${this.#streaming.from}\n\n`)
    this.#ping = setInterval(() => void this.#sendPing(controller), pingMs)
    this.#sendEvents(controller).then(
      () => this.#isGone || controller.close(),
      (error) => this.#isGone || controller.error(error),
    )
  }

  pull(): void {
    this.#onRoom()
  }

  cancel(): void {
    this.#isGone = true
    this.#end()
  }

  async #sendPing(controller: Controller): Promise<void> {
    if (!(await this.#streaming.isWelcome())) return this.#end()
    if (!this.#isOver && hasRoom(controller)) send(controller, ': still here\n\n')
  }

  async #sendEvents(controller: Controller): Promise<void> {
    const { events, isWelcome, show } = this.#streaming
    try {
      for await (const event of events) {
        if (!(await isWelcome())) return
        const shown = (await show(event)) as { id: string }
        send(controller, `id: ${shown.id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`)
        // events for a slow client wait in the listener's inbox, which has a limit, and not in this buffer
        if (!hasRoom(controller)) await this.#room()
      }
    } finally {
      this.#end()
    }
  }

  /** Resolves once the buffer has room again. A client that reads nothing at all would keep its slot, and what waits for it, forever. */
  async #room(): Promise<void> {
    let late: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      this.#onRoom = resolve
      late = setTimeout(() => reject(new Error('The client stopped reading.')), this.#streaming.stalledMs)
    }).finally(() => clearTimeout(late))
  }

  #end(): void {
    this.#isOver = true
    clearInterval(this.#ping)
    this.#streaming.onEnd()
    this.#onRoom()
  }
}

function send(controller: Controller, text: string): void {
  controller.enqueue(encoder.encode(text))
}

function hasRoom({ desiredSize }: Controller): boolean {
  return (desiredSize ?? 0) > 0
}
