/** A request, however it came: what the door needs to know of it. A web Request has most of it already. */
export interface Ask {
  readonly method: string
  /** With its host, as in http://localhost:7420/v1/jobs?limit=1. */
  readonly url: string
  readonly headers: { get(name: string): string | null }
  /** The address that it came from; null if nobody knows. */
  readonly address: string | null
  /** Fires when the client has gone. */
  readonly signal: AbortSignal
  /** All headers, by their names in small letters. */
  all(): Record<string, unknown>
  /** The body; `too large` as soon as more than so many bytes have come. */
  read(mostBytes: number): Promise<Uint8Array | 'too large'>
}

/** A web Request as an ask. */
export function askOf(request: Request): Ask {
  return {
    method: request.method,
    url: request.url,
    headers: request.headers,
    address: null,
    get signal() {
      return request.signal
    },
    all: () => Object.fromEntries(request.headers),
    read: (mostBytes) => gather(request.body ?? [], mostBytes),
  }
}

/** The bytes of a stream, up to so many. */
export async function gather(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mostBytes: number,
): Promise<Uint8Array | 'too large'> {
  const read: Uint8Array[] = []
  let length = 0
  for await (const part of parts) {
    length += part.length
    if (length > mostBytes) return 'too large'
    read.push(part)
  }
  return read.length === 1 ? (read[0] as Uint8Array) : Buffer.concat(read)
}
