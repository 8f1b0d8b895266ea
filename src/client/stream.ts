import type { components } from './schema.ts'

/** One event, as the server sends it. */
export type ServerEvent = components['schemas']['Event']

const firstPauseMs = 500
const longestPauseMs = 15_000

/**
 * Reads server-sent events, and reconnects after the last one when the connection ends. Permanent errors, such as an invalid key or request, are
 * thrown; temporary ones are retried.
 */
export async function* readEvents(
  open: (lastId: string | undefined, signal: AbortSignal) => Promise<Response>,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<ServerEvent> {
  let lastId: string | undefined
  for (let failures = 0; !signal.aborted; ) {
    try {
      const response = await open(lastId, signal)
      for await (const { id, event } of blocksIn(response)) {
        lastId = id ?? lastId
        if (!event) continue
        failures = 0
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      const { status } = error as { status?: number }
      if (status !== undefined && status < 500 && status !== 429) throw error
    }
    failures += 1
    await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1)), signal)
  }
}

/** Blocks of a stream. Most contain an event; the first contains only the id to resume from. */
async function* blocksIn(response: Response): AsyncGenerator<{ id: string | undefined; event?: ServerEvent }> {
  const decoder = new TextDecoder()
  let rest = ''
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const blocks = (rest + decoder.decode(part.value, { stream: true })).split('\n\n')
      rest = blocks.pop() as string
      for (const block of blocks) {
        const lines = block.split('\n')
        const field = (name: string) =>
          lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length))
        const [id] = field('id: ')
        const data = field('data: ')
        if (data.length > 0) yield { id, event: JSON.parse(data.join('\n')) as ServerEvent }
        else if (id !== undefined) yield { id }
      }
    }
  } finally {
    await reader.cancel().catch(() => {}) // a broken connection has nothing left to cancel
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
