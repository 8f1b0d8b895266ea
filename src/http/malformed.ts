import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HoldfastError } from '../errors/errors.ts'
import type { Reply } from './operation.ts'
import { everyAnswer, problemBytes, problemOf } from './problem.ts'

/** The response to a request whose path or host is malformed. */
export function refuseTarget(error: HoldfastError): Reply {
  const requestId = randomUUID()
  const { status, headers, body } = problemOf(error, requestId)
  return { status, headers: { ...headers, ...everyAnswer, 'x-request-id': requestId }, body }
}

/** Makes a server respond with a problem where Node would respond without a body or not at all: malformed, oversized or slow requests, and CONNECT. */
export function refuseMalformed(server: Server, isAnswering: (socket: Socket) => boolean): void {
  // an unknown expectation is not a reason to refuse
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  // a client that asks before it sends a body is told to continue only when the body is read
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => {}) // Node has detached its own listener
    refuse(socket, new HoldfastError('method_not_allowed', 'This server is not a proxy and does not accept CONNECT.'))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // in the middle of a response, another one would be taken for its body
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket as Socket)) return void socket.destroy()
    refuse(socket, errorOf(error))
  })
}

function refuse(socket: Duplex, error: HoldfastError): void {
  socket.end(problemBytes(error), () => socket.destroy())
}

function errorOf({ code }: NodeJS.ErrnoException): HoldfastError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HoldfastError('headers_too_large', 'The path and headers of the request exceed 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HoldfastError('request_slow', 'The request took too long to arrive; send it again.')
  return new HoldfastError('header_invalid', 'The request is not well-formed HTTP.')
}
