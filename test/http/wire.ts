import { createConnection } from 'node:net'

/** A request as it is sent, valid or not. */
export interface WireRequest {
  method: string
  /** The path with its query, as in the request line. */
  target: string
  headers: readonly (readonly [string, string])[]
  body?: Buffer | undefined
  /** How the body is framed: with its length, in chunks, or cut short, as by a client that dies. */
  framing?: 'length' | 'chunked' | 'short'
}

/** The response. */
export interface WireAnswer {
  status: number
  headers: Record<string, string>
  body: string
  /** Everything, head and body, as it was received. */
  text: string
}

interface Patience {
  /** How long to wait for the end of the response. What has arrived by then is returned; null if nothing has. */
  ms: number
  /** How long to read a stream of events, which has no end. */
  streamMs: number
}

/** Sends a request exactly as given, which no HTTP client would do, and reads the response. Null if none came. */
export function send(
  port: number,
  request: WireRequest,
  { ms, streamMs }: Patience = { ms: 10_000, streamMs: 40 },
): Promise<WireAnswer | null> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' })
    const parts: Buffer[] = []
    let isStream = false
    const end = () => {
      clearTimeout(late)
      socket.destroy()
      resolve(parse(Buffer.concat(parts), request.method))
    }
    let late = setTimeout(end, ms)
    socket.on('data', (part) => {
      parts.push(part)
      if (isStream || !part.includes('text/event-stream')) return
      isStream = true
      clearTimeout(late)
      late = setTimeout(end, streamMs)
    })
    socket.on('error', () => {}) // a server may close while a body that it refused is still being sent
    socket.on('close', end)
    socket.on('connect', () => {
      socket.write(headOf(port, request))
      if (request.body) socket.write(framed(request.body, request.framing))
      if (request.framing === 'short') socket.end()
    })
  })
}

function headOf(port: number, { method, target, headers, body, framing = 'length' }: WireRequest): Buffer {
  const own: (readonly [string, string])[] = [['connection', 'close']]
  if (!headers.some(([name]) => name.toLowerCase() === 'host')) own.push(['host', `127.0.0.1:${port}`])
  if (body && framing === 'chunked') own.push(['transfer-encoding', 'chunked'])
  if (body && framing !== 'chunked')
    own.push(['content-length', String(body.length + (framing === 'short' ? 1_000 : 0))])
  const lines = [...own, ...headers].map(([name, value]) => `${name}: ${value}`.replace(/[\r\n]/g, ' '))
  return Buffer.from(`${method} ${target.replace(/[\r\n]/g, '')} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
}

function framed(body: Buffer, framing: WireRequest['framing']): Buffer {
  if (framing !== 'chunked') return body
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += 65_536) {
    const part = body.subarray(at, at + 65_536)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function parse(all: Buffer, method: string): WireAnswer | null {
  const split = all.indexOf('\r\n\r\n')
  if (split < 0) return null
  const [first = '', ...lines] = all.subarray(0, split).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
  // an interim response, such as 100 Continue, is followed by the real one
  if (status < 200) return parse(all.subarray(split + 4), method)
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const rest = all.subarray(split + 4)
  const body = headers['transfer-encoding'] === 'chunked' ? unchunk(rest) : rest
  return { status, headers, body: body.toString('utf8'), text: all.toString('utf8') }
}

function unchunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf('\r\n', at)
    const length = line < 0 ? 0 : Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16)
    if (!(length > 0)) break
    parts.push(bytes.subarray(line + 2, line + 2 + length))
    at = line + 2 + length + 2
  }
  return Buffer.concat(parts)
}
