import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import type { Connection } from './connection.ts'
import { Connections } from './connections.ts'
import { type Http, type HttpOptions, makeHttp } from './http.ts'
import { refuseMalformed, refuseTarget } from './malformed.ts'
import { requestOfNode, send } from './node.ts'
import type { Reply } from './operation.ts'

/** An HTTP server. */
export interface HttpServer extends Service {
  /** The URL that it listens on. */
  url(): string
}

/** How much longer requests in progress get once idle connections have been closed. */
const graceMs = 5_000

/**
 * Makes a server for the HTTP API. `start` resolves once it listens, whether or not there is a database. `stop` accepts no more connections, and ends
 * long polls and streams with a response. Open connections may send one more request each, whose response closes the connection.
 */
export function makeHttpServer(options: HttpOptions): HttpServer {
  const { config } = options
  const http = makeHttp(options)
  // disconnects clients that send their headers or body too slowly, or too many headers
  const server = createServer({
    headersTimeout: config.httpHeaderMs,
    requestTimeout: config.httpBodyMs,
    keepAliveTimeout: 75_000,
    connectionsCheckingInterval: Math.min(1_000, config.httpHeaderMs),
    maxHeaderSize: 16_384,
    // refused by us, with a problem
    requireHostHeader: false,
  })
  const connections = new Connections(
    server,
    config,
    (incoming, outgoing, connection) => receive(http, incoming, outgoing, connection),
    { observer: http.meter, isBusy: http.isBusy },
  )
  refuseMalformed(server, (socket) => connections.isAnswering(socket))
  let stopping: Promise<void> | undefined

  async function stop(): Promise<void> {
    if (!server.listening) return void (await http.stop())
    connections.close()
    // not the close of the HTTP server, which closes idle connections at once, and with them requests that are on their way
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
    const drained = setTimeout(() => connections.endIdle(), config.httpDrainMs)
    // counted from here: an unresponsive database may take all of it
    const late = setTimeout(() => connections.end(), config.httpDrainMs + graceMs)
    await http.stop()
    await closed
    clearTimeout(drained)
    clearTimeout(late)
    connections.stop()
    server.close() // ends the timers of the HTTP server
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
          // a connection that could not be accepted must not end all others
          server.on('error', (error) => options.log.error({ err: error }, 'the server could not accept a connection'))
          resolve()
        })
      }),
    stop() {
      stopping ??= stop()
      return stopping
    },
  }
}

async function receive(
  http: Http,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  connection: Connection,
): Promise<void> {
  try {
    await send(incoming, outgoing, await handled(http, incoming, outgoing), connection)
  } catch {
    outgoing.destroy() // a broken stream; its client reconnects
  }
}

async function handled(http: Http, incoming: IncomingMessage, outgoing: ServerResponse): Promise<Reply> {
  const request = requestOfNode(incoming, outgoing)
  return request instanceof HoldfastError ? refuseTarget(request) : http.handle(request)
}

function describe(error: NodeJS.ErrnoException, { httpHost, httpPort }: HttpOptions['config']): Error {
  const where = `${httpHost}:${httpPort}`
  if (error.code === 'EADDRINUSE')
    return new HoldfastError(
      'config_invalid',
      `Another program is listening on ${where}. Set httpPort to another port, or to 0 for any free port.`,
      { cause: error },
    )
  return new HoldfastError(
    'config_invalid',
    `The HTTP API could not listen on ${where} (${error.code ?? error.message}). Check the settings httpHost and httpPort.`,
    { cause: error },
  )
}
