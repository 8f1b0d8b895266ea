import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'

/** A self-signed certificate for hooks.test and 127.0.0.1. */
export const certificate = readFileSync(new URL('./self-signed.cert.pem', import.meta.url), 'utf8')
const key = readFileSync(new URL('./self-signed.key.pem', import.meta.url), 'utf8')

/** A request that a receiver got. */
export interface Received {
  method: string | undefined
  path: string | undefined
  headers: IncomingHttpHeaders
  body: string
}

/** A local server that records its requests. */
export interface Receiver extends AsyncDisposable {
  port: number
  /** Its URL, without a trailing slash. */
  url: string
  received: Received[]
  /** How many connections were ever made. */
  connections(): number
  /** Resolves when no connection is left. */
  isLeft(): Promise<void>
}

type Reply = (response: ServerResponse, received: Received) => void

/** A receiver that answers each request with the given function. */
export function receiver(reply: Reply, scheme: 'http' | 'https' = 'http'): Promise<Receiver> {
  const received: Received[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method, url: path, headers } = request
    const one = { method, path, headers, body: Buffer.concat(chunks).toString('utf8') }
    received.push(one)
    reply(response, one)
  }
  const server = scheme === 'https' ? createTlsServer({ key, cert: certificate }, listener) : createServer(listener)
  return listening(server, scheme, received)
}

/** A receiver that writes raw bytes as soon as it has received something. */
export function rawReceiver(reply: (socket: Socket) => void): Promise<Receiver> {
  return listening(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => reply(socket))
    }),
    'http',
    [],
  )
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  await using one = await receiver(() => {})
  return one.port
}

async function listening(server: Server, scheme: string, received: Received[]): Promise<Receiver> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      server.emit('left')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    received,
    connections: () => connections,
    async isLeft() {
      while (sockets.size > 0) await once(server, 'left')
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
