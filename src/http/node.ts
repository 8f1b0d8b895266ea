import type { IncomingMessage, ServerResponse } from 'node:http'
import { HoldfastError } from '../errors/errors.ts'
import type { Ask } from './ask.ts'
import type { Reply } from './operation.ts'

/**
 * A request of Node's own server as an ask. Nothing is made that nobody asks for: web requests, headers, streams and signals cost more than all that a submit
 * does beside its statement.
 */
export function askOfNode(incoming: IncomingMessage, outgoing: ServerResponse): Ask | HoldfastError {
  const { headers } = incoming
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
    read: (mostBytes) => readAll(incoming, mostBytes),
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

/** Reads by events: an iterator over a request costs more, and ends its connection when it is left early. */
function readAll(incoming: IncomingMessage, mostBytes: number): Promise<Uint8Array | 'too large'> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    incoming.on('data', (part: Buffer) => {
      length += part.length
      if (length <= mostBytes) return void parts.push(part)
      incoming.pause()
      resolve('too large')
    })
    incoming.on('end', () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)))
    incoming.on('error', reject)
    // after the end it always comes, and an error is not made for nothing
    incoming.on('close', () => incoming.complete || reject(new Error('The client has gone.')))
  })
}

/** Sends a reply. Of a body that was not read to its end the rest is not waited for: the connection ends with the answer. */
export async function send(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, headers, body }: Reply,
): Promise<void> {
  if (outgoing.destroyed) return void (body instanceof ReadableStream && (await body.cancel()))
  const isHead = incoming.method === 'HEAD'
  if (!incoming.complete) outgoing.shouldKeepAlive = false
  if (body instanceof ReadableStream) {
    outgoing.writeHead(status, headers)
    if (isHead) await body.cancel()
    else await pump(body, outgoing)
    return void outgoing.end()
  }
  const length = body === null ? undefined : Buffer.byteLength(body)
  outgoing.writeHead(status, length === undefined ? headers : { ...headers, 'content-length': String(length) })
  outgoing.end(isHead || body === null ? undefined : body)
  if (!incoming.complete) outgoing.once('finish', () => incoming.destroy())
}

async function pump(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
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
    if (!outgoing.destroyed)
      await new Promise<void>((resolve) => {
        drained = resolve
      })
  }
  outgoing.off('close', leave)
}
