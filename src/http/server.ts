import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import { type HttpOptions, makeHttp } from './http.ts'
import { refuseMalformed, refuseTarget } from './malformed.ts'

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
  const listener = getRequestListener((request, env) => http.fetch(request, env), { errorHandler: refuseTarget })
  const server = createServer(
    {
      headersTimeout: config.httpHeaderMs,
      requestTimeout: config.httpBodyMs,
      keepAliveTimeout: 75_000,
      connectionsCheckingInterval: Math.min(1_000, config.httpHeaderMs),
      maxHeaderSize: 16_384,
    },
    (incoming, outgoing) => void listener(incoming, outgoing),
  )
  refuseMalformed(server)
  server.maxRequestsPerSocket = 0
  let stopping: Promise<void> | undefined

  async function stop(): Promise<void> {
    if (!server.listening) return void (await http.stop())
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    await http.stop()
    server.closeIdleConnections()
    const idle = setInterval(() => server.closeIdleConnections(), 50)
    const late = setTimeout(() => server.closeAllConnections(), graceMs)
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
          resolve()
        })
      }),
    stop() {
      stopping ??= stop()
      return stopping
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
