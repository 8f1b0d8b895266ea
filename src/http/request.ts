/** A request, whatever server received it. A web Request already has most of this. */
export interface HttpRequest {
  readonly method: string
  /** With its host, as in http://localhost:7420/v1/jobs?limit=1. */
  readonly url: string
  readonly headers: { get(name: string): string | null }
  /** The address of the client; null if unknown. */
  readonly address: string | null
  /** Fires when the client has disconnected. */
  readonly signal: AbortSignal
  /** All headers, by their lower-case names. */
  all(): Record<string, unknown>
  /** The body; `too large` as soon as more bytes than that have arrived. */
  read(mostBytes: number): Promise<Uint8Array | 'too large'>
}

/** Makes a request from a web Request. */
export function requestOf(request: Request): HttpRequest {
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

/** Reads a stream of bytes, up to a limit. */
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
