import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { HoldfastError } from '../errors/errors.ts'
import type { Reply } from './operation.ts'
import { everyAnswer, problemOf, problemText } from './problem.ts'

/** The answer to a request that could not even be asked about: its path or its host is nonsense. */
export function refuseTarget(error: HoldfastError): Reply {
  const requestId = randomUUID()
  const { status, headers, body } = problemOf(error, requestId)
  return { status, headers: { ...headers, ...everyAnswer, 'x-request-id': requestId }, body }
}

/** Has a server answer with a problem, too, where Node itself would answer without a body: what is no HTTP, is too long, or comes too slowly. */
export function refuseMalformed(server: Server): void {
  const answers = new WeakMap<Duplex, ServerResponse>()
  server.on('request', (request: IncomingMessage, response: ServerResponse) => answers.set(request.socket, response))
  // an expectation that nobody knows is no reason to refuse
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answer = answers.get(socket)
    // in the middle of an answer another one would be taken for its body
    const isBusy = answer?.headersSent === true && !answer.writableFinished
    if (!socket.writable || error.code === 'ECONNRESET' || isBusy) return void socket.destroy()
    socket.end(textOf(errorOf(error)), () => socket.destroy())
  })
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

/** The bytes of a problem: there is no response to write to, only a socket. */
function textOf(error: HoldfastError): string {
  const requestId = randomUUID()
  const { status, body } = problemText(error, requestId)
  const headers = [
    ['content-type', 'application/problem+json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
    ['x-request-id', requestId],
    ...Object.entries(everyAnswer),
  ]
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`
}
