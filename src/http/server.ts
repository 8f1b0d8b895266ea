import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import type { Connection } from './connection.ts'
import { Connections } from './connections.ts'
import { type Http, type HttpOptions, makeHttp } from './http.ts'
import { refuseMalformed, refuseTarget } from './malformed.ts'
import { askOfNode, send } from './node.ts'
import type { Reply } from './operation.ts'

/** An HTTP server that runs. */
export interface HttpServer extends Service {
  /** Where it listens. */
  url(): string
}

/** What requests that are under way get once the time for idle connections is over. */
const graceMs = 5_000

/**
 * Makes a server of the HTTP door. `start` resolves once it listens, whether there is a database or not. `stop` accepts no more connections and ends long polls
 * and streams with an answer. Connections that are open may send one more request each: its answer says that it was the last.
 */
export function makeHttpServer(options: HttpOptions): HttpServer {
  const { config } = options
  const http = makeHttp(options)
  // a client that sends its headers or its body drop by drop is cut off, and so is one with endless headers
  const server = createServer({
    headersTimeout: config.httpHeaderMs,
    requestTimeout: config.httpBodyMs,
    keepAliveTimeout: 75_000,
    connectionsCheckingInterval: Math.min(1_000, config.httpHeaderMs),
    maxHeaderSize: 16_384,
    // we refuse that ourselves, with a problem
    requireHostHeader: false,
  })
  const connections = new Connections(
    server,
    config,
    (incoming, outgoing, connection) => receive(http, incoming, outgoing, connection),
    http.meter,
  )
  refuseMalformed(server, (socket) => connections.isAnswering(socket))
  let stopping: Promise<void> | undefined

  async function stop(): Promise<void> {
    if (!server.listening) return void (await http.stop())
    connections.close()
    // not that of the HTTP server, which ends idle connections at once, and with them requests that are on their way
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
    const drained = setTimeout(() => connections.endIdle(), config.httpDrainMs)
    // counted from here: a database that does not answer may take all of it
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

async function receive(
  http: Http,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  connection: Connection,
): Promise<void> {
  try {
    await send(incoming, outgoing, await handled(http, incoming, outgoing), connection)
  } catch {
    outgoing.destroy() // a stream that broke off; its client comes back
  }
}

async function handled(http: Http, incoming: IncomingMessage, outgoing: ServerResponse): Promise<Reply> {
  const ask = askOfNode(incoming, outgoing)
  return ask instanceof HoldfastError ? refuseTarget(ask) : http.handle(ask)
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
