import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HoldfastError } from '../errors/errors.ts'
import type { Reply } from './operation.ts'
import { everyAnswer, problemBytes, problemOf } from './problem.ts'

/** The answer to a request that could not even be asked about: its path or its host is nonsense. */
export function refuseTarget(error: HoldfastError): Reply {
  const requestId = randomUUID()
  const { status, headers, body } = problemOf(error, requestId)
  return { status, headers: { ...headers, ...everyAnswer, 'x-request-id': requestId }, body }
}

/** Makes a server answer with a problem where Node would answer without a body or not at all: malformed, oversized or slow requests, and CONNECT. */
export function refuseMalformed(server: Server, isAnswering: (socket: Socket) => boolean): void {
  // an expectation that nobody knows is no reason to refuse
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  // whoever asks before sending a body is told to go on only when somebody reads it
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => {}) // nobody else listens once Node has handed it over
    refuse(socket, new HoldfastError('method_not_allowed', 'This server is no proxy, so it takes no CONNECT.'))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // in the middle of an answer another one would be taken for its body
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket as Socket)) return void socket.destroy()
    refuse(socket, errorOf(error))
  })
}

function refuse(socket: Duplex, error: HoldfastError): void {
  socket.end(problemBytes(error), () => socket.destroy())
}

function errorOf({ code }: NodeJS.ErrnoException): HoldfastError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HoldfastError(
      'headers_too_large',
      'The path and the headers of the request are longer than 16 KiB together.',
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HoldfastError('request_slow', 'The request took too long to arrive; send it again.')
  return new HoldfastError('header_invalid', 'What was sent is not well-formed HTTP.')
}
