import type { IncomingMessage, ServerResponse } from 'node:http'
import { HoldfastError } from '../errors/errors.ts'
import type { Ask } from './ask.ts'
import type { Connection } from './connection.ts'
import type { Reply } from './operation.ts'

/**
 * A request of Node's own server as an ask. Nothing is made that nobody asks for: web requests, headers, streams and signals cost more than all that a submit
 * does beside its statement.
 */
export function askOfNode(incoming: IncomingMessage, outgoing: ServerResponse): Ask | HoldfastError {
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

/** The whole URL as everybody writes it; null if there is none. Node takes any text for a path, and any for a host. */
function urlOf({ url = '', headers: { host = 'localhost' } }: IncomingMessage): string | null {
  const whole = url.startsWith('/') ? `http://${host}${url}` : url
  // most are so plain that nobody needs to parse them
  if (plain.test(whole)) return whole
  const isNonsense = url.startsWith('//') || !/^[\w.:[\]-]+$/.test(host) || !/^https?:\/\//i.test(whole)
  return isNonsense || !URL.canParse(whole) ? null : new URL(whole).href
}

/** Whether the client sends its body only when it is told to. */
function isHeldBack({ headers: { expect } }: IncomingMessage): boolean {
  return expect !== undefined && /(?:^|\W)100-continue(?:$|\W)/i.test(expect)
}

/** Reads by events: an iterator over a request costs more, and ends its connection when it is left early. */
function readAll(incoming: IncomingMessage, mostBytes: number): Promise<Uint8Array | 'too large'> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    const take = (part: Buffer) => {
      length += part.length
      if (length <= mostBytes) return void parts.push(part)
      incoming.off('data', take)
      incoming.pause()
      parts.length = 0
      resolve('too large')
    }
    incoming.on('data', take)
    incoming.on('end', () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)))
    incoming.on('error', reject)
    // after the end it always comes, and an error is not made for nothing
    incoming.on('close', () => incoming.complete || reject(new Error('The client has gone.')))
  })
}

/** Sends a reply. If the body of the request was not read to its end, the connection ends with the answer. */
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
 * Sends an answer while the body of its request is still coming. A connection that is closed with unread bytes is reset, and a reset takes the answer from a
 * client that writes first and reads then. So the answer is written at once, and ended when the rest has come, or too much of it, or too slowly.
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
  // nothing comes from a client that was not told to go on
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
    incoming.on('error', () => {}) // it has its answer already
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
    void reader.cancel().catch(() => {}) // a stream that has failed has nothing left to cancel
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
