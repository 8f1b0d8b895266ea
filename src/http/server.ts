import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import { type Http, type HttpOptions, makeHttp } from './http.ts'
import { refuseMalformed, refuseTarget } from './malformed.ts'
import { askOfNode, send } from './node.ts'
import type { Reply } from './operation.ts'

/** An HTTP server that runs. */
export interface HttpServer extends Service {
  /** Where it listens. */
  url(): string
}

const graceMs = 5_000

/**
 * Makes a server of the HTTP door. `start` resolves once it listens, whether there is a database or not. `stop` takes no more requests, ends long polls and
 * streams with an answer, and gives the rest a moment to finish.
 */
export function makeHttpServer(options: HttpOptions): HttpServer {
  const { config } = options
  const http = makeHttp(options)
  // a client that sends its headers or its body drop by drop is cut off, and so is one with endless headers
  const server = createServer(
    {
      headersTimeout: config.httpHeaderMs,
      requestTimeout: config.httpBodyMs,
      keepAliveTimeout: 75_000,
      connectionsCheckingInterval: Math.min(1_000, config.httpHeaderMs),
      maxHeaderSize: 16_384,
    },
    (incoming, outgoing) => void receive(http, incoming, outgoing),
  )
  refuseMalformed(server)
  const sockets = watchSockets(server)
  let stopping: Promise<void> | undefined

  async function stop(): Promise<void> {
    if (!server.listening) return void (await http.stop())
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    // counted from here: a database that does not answer may take all of it
    const late = setTimeout(() => server.closeAllConnections(), graceMs)
    await http.stop()
    sockets.endIdle()
    const idle = setInterval(() => sockets.endIdle(), 50)
    await closed
    clearInterval(idle)
    clearTimeout(late)
  }

  return {
    url() {
      const { port, family, address } = server.address() as AddressInfo
      return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
    },
    start: () =>
      new Promise((resolve, reject) => {
        if (server.listening) return resolve()
        server.once('error', (error: NodeJS.ErrnoException) => reject(describe(error, config)))
        server.listen(config.httpPort, config.httpHost, () => {
          server.removeAllListeners('error')
          // a connection that could not be taken must not end all others
          server.on('error', (error) => options.log.error({ err: error }, 'trouble with taking connections'))
          resolve()
        })
      }),
    stop() {
      stopping ??= stop()
      return stopping
    },
  }
}

async function receive(http: Http, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  try {
    await send(incoming, outgoing, await handled(http, incoming, outgoing))
  } catch {
    outgoing.destroy() // a stream that broke off; its client comes back
  }
}

async function handled(http: Http, incoming: IncomingMessage, outgoing: ServerResponse): Promise<Reply> {
  const ask = askOfNode(incoming, outgoing)
  return ask instanceof HoldfastError ? refuseTarget(ask) : http.handle(ask)
}

/**
 * Knows which connections have a request under way. The server's own notion of idle leaves out those that were opened and never used, as browsers
 * do in advance, and a stop would wait for them.
 */
function watchSockets(server: Server): { endIdle(): void } {
  const underWay = new Map<Socket, number>()
  server.on('connection', (socket: Socket) => {
    underWay.set(socket, 0)
    socket.once('close', () => underWay.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => underWay.has(socket) && underWay.set(socket, (underWay.get(socket) as number) - 1))
  })
  return {
    endIdle() {
      for (const [socket, count] of underWay) if (count === 0) socket.destroy()
    },
  }
}

function describe(error: NodeJS.ErrnoException, { httpHost, httpPort }: HttpOptions['config']): Error {
  const where = `${httpHost}:${httpPort}`
  if (error.code === 'EADDRINUSE')
    return new HoldfastError(
      'config_invalid',
      `Another program listens at ${where}. Choose another port with the setting httpPort, or 0 for any.`,
      { cause: error },
    )
  return new HoldfastError(
    'config_invalid',
    `The HTTP API cannot listen at ${where} (${error.code ?? error.message}). See the settings httpHost and httpPort.`,
    { cause: error },
  )
}
