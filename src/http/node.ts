import type { IncomingMessage, ServerResponse } from 'node:http'
import { HoldfastError } from '../errors/errors.ts'
import type { Connection } from './connection.ts'
import type { Reply } from './operation.ts'
import type { HttpRequest } from './request.ts'

/**
 * A request of Node's HTTP server. Nothing is created before it is used: web requests, headers, streams and signals cost more than everything
 * else that a submit does besides its statement.
 */
export function requestOfNode(incoming: IncomingMessage, outgoing: ServerResponse): HttpRequest | HoldfastError {
  const { headers } = incoming
  if (headers.host === undefined && incoming.httpVersion === '1.1')
    return new HoldfastError('header_invalid', 'The request has no Host header, which HTTP/1.1 requires.')
  const url = urlOf(incoming)
  if (url === null)
    return new HoldfastError('header_invalid', 'The path or the Host header of the request is malformed.')
  let gone: AbortController | undefined
  return {
    method: incoming.method ?? 'GET',
    url,
    headers: {
      get(name) {
        const value = headers[name]
        if (value === undefined) return null
        return typeof value === 'string' ? value : value.join(', ')
      },
    },
    address: incoming.socket.remoteAddress ?? null,
    get signal() {
      if (!gone) {
        const leaving = new AbortController()
        gone = leaving
        if (outgoing.closed) leaving.abort()
        else outgoing.once('close', () => outgoing.writableFinished || leaving.abort())
      }
      return gone.signal
    },
    all: () => headers,
    read(mostBytes) {
      if (isHeldBack(incoming)) outgoing.writeContinue()
      return readAll(incoming, mostBytes)
    },
  }
}

const plain = /^http:\/\/[a-z0-9.-]+(:\d{1,5})?\/[\w/?=&,:-]*$/

/** The full URL in its usual form; null if it is malformed. Node accepts any text as path and as host. */
function urlOf({ url = '', headers: { host = 'localhost' } }: IncomingMessage): string | null {
  const whole = url.startsWith('/') ? `http://${host}${url}` : url
  // most are so simple that they need no parsing
  if (plain.test(whole)) return whole
  const isNonsense = url.startsWith('//') || !/^[\w.:[\]-]+$/.test(host) || !/^https?:\/\//i.test(whole)
  return isNonsense || !URL.canParse(whole) ? null : new URL(whole).href
}

/** Whether the client waits for a go-ahead before it sends its body. */
function isHeldBack({ headers: { expect } }: IncomingMessage): boolean {
  return expect !== undefined && /(?:^|\W)100-continue(?:$|\W)/i.test(expect)
}

/** Reads with events: an iterator over a request costs more, and closes its connection when it ends early. */
function readAll(incoming: IncomingMessage, mostBytes: number): Promise<Uint8Array | 'too large'> {
  return new Promise((resolve, reject) => {
    const parts = new Parts(Math.min(mostBytes, Number(incoming.headers['content-length'] ?? 0)))
    const take = (part: Buffer) => {
      if (parts.length + part.length <= mostBytes) return void parts.add(part)
      incoming.off('data', take)
      incoming.pause()
      resolve('too large')
    }
    incoming.on('data', take)
    incoming.on('end', () => resolve(parts.whole()))
    incoming.on('error', reject)
    // this event also follows a normal end, so an error is made only if needed
    incoming.on('close', () => incoming.complete || reject(new Error('The client disconnected.')))
  })
}

/** Above this size, parts are copied together as they arrive: doing it at the end would delay others. */
const longBody = 65_536

/** The received parts of a body. */
class Parts {
  length = 0
  readonly #parts: Buffer[] = []
  readonly #target: Buffer | undefined

  /** `expected`: how many bytes the sender has announced; 0 if it did not. */
  constructor(expected: number) {
    if (expected > longBody) this.#target = Buffer.allocUnsafeSlow(expected)
  }

  add(part: Buffer): void {
    if (this.#target) part.copy(this.#target, this.length)
    else this.#parts.push(part)
    this.length += part.length
  }

  whole(): Buffer {
    if (this.#target) return this.#target.subarray(0, this.length)
    return this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts)
  }
}

/** Sends a reply. If the body of the request was not read to its end, the connection closes after the response. */
export async function send(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, headers, body }: Reply,
  connection: Connection,
): Promise<void> {
  if (outgoing.destroyed) return void (body instanceof ReadableStream && (await body.cancel()))
  const isHead = incoming.method === 'HEAD'
  if (!incoming.complete || connection.isClosing) outgoing.shouldKeepAlive = false
  if (body instanceof ReadableStream) {
    outgoing.writeHead(status, headers)
    if (isHead) await body.cancel()
    else await pump(body, outgoing, connection)
    return void outgoing.end()
  }
  const length = body === null ? undefined : Buffer.byteLength(body)
  outgoing.writeHead(status, length === undefined ? headers : { ...headers, 'content-length': String(length) })
  const sent = isHead || body === null ? undefined : body
  if (!incoming.complete) return refuseRest(incoming, outgoing, sent, connection)
  outgoing.end(sent)
  connection.written()
}

/**
 * Sends a response while the body of its request is still arriving. A connection that is closed with unread bytes is reset, and a client that writes
 * first and reads later then loses the response. So the response is written at once, and ended when the rest has arrived, or is too long or too slow.
 */
async function refuseRest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  body: string | Uint8Array | undefined,
  connection: Connection,
): Promise<void> {
  outgoing.flushHeaders()
  if (body !== undefined && body.length > 0) outgoing.write(body)
  connection.lingers()
  // a client that still waits for its go-ahead sends nothing
  if (!isHeldBack(incoming)) await discardRest(incoming, connection)
  outgoing.end()
  connection.written()
  if (!incoming.complete) outgoing.once('finish', () => incoming.destroy())
}

function discardRest(incoming: IncomingMessage, { limits }: Connection): Promise<void> {
  return new Promise((resolve) => {
    let left = limits.httpLingerBytes
    const late = setTimeout(end, limits.httpLingerMs)
    function end(): void {
      clearTimeout(late)
      incoming.off('data', discard)
      incoming.pause()
      resolve()
    }
    function discard(part: Buffer): void {
      left -= part.length
      if (left < 0) end()
    }
    incoming.on('error', () => {}) // it has been answered already
    incoming.once('end', end)
    incoming.once('close', end)
    incoming.on('data', discard)
    incoming.resume()
  })
}

async function pump(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, connection: Connection): Promise<void> {
  const reader = body.getReader()
  let drained: () => void = () => {}
  const leave = () => {
    drained()
    void reader.cancel().catch(() => {}) // a failed stream has nothing left to cancel
  }
  outgoing.on('drain', () => drained())
  outgoing.once('close', leave)
  for (let part = await reader.read(); !part.done && !outgoing.destroyed; part = await reader.read()) {
    if (outgoing.write(part.value)) continue
    if (outgoing.destroyed) break
    connection.written()
    await new Promise<void>((resolve) => {
      drained = resolve
    })
    connection.taken()
  }
  outgoing.off('close', leave)
}
