/**
 * Decides when the bytes that arrive on connections are parsed. Node would parse everything that has arrived on all connections in one turn of the
 * event loop. Here, little is parsed in one turn, and networks take turns. A long body is read piece by piece, and more slowly while small requests
 * are in progress: each piece is garbage soon after, and the garbage collector stops everyone.
 */
import type { Connection } from './connection.ts'
import { Slices } from './slices.ts'
import { Turns } from './turns.ts'

/** What reading needs from the connections of a server. */
export interface ReadsOwner {
  isOpen(connection: Connection): boolean
  cut(connection: Connection): void
  /** Refuses a connection with too many pipelined requests. */
  refusePipeline(connection: Connection): void
  /** Whether small requests are in progress. */
  isBusy?: () => boolean
}

type Parse = (bytes: Buffer) => void

/** Reads from the sockets of a server. */
export class SocketReads {
  readonly #owner: ReadsOwner
  readonly #turns = new Turns()
  readonly #longBodies: Slices

  constructor(owner: ReadsOwner) {
    this.#owner = owner
    this.#longBodies = new Slices(owner.isBusy, pauseMs)
  }

  /** Replaces Node's own listener, and passes on to it what there is time for. */
  watch(connection: Connection): void {
    const { socket } = connection
    const [parse] = socket.listeners('data') as Parse[]
    if (!parse) return
    socket.removeListener('data', parse)
    socket.on('data', (bytes: Buffer) => {
      if (connection.isReceiving()) this.#readBody(connection, parse, bytes)
      else this.#readRequests(connection, parse, bytes)
    })
  }

  #readRequests(connection: Connection, parse: Parse, bytes: Buffer): void {
    const { network } = connection
    connection.bodyBytes = 0
    if (this.#turns.hasTime()) return void this.#parse(connection, parse, bytes)
    if (network.unreadBytes + bytes.length > mostUnread) return void this.#owner.cut(connection)
    this.#turns.add(network, this.#hold(connection, parse, bytes))
  }

  /** The start of a body is not delayed: its request has already been accepted, and most are short. */
  #readBody(connection: Connection, parse: Parse, bytes: Buffer): void {
    const { network } = connection
    connection.bodyBytes += bytes.length
    const isShort = connection.bodyBytes <= shortBody || network.unreadBytes + bytes.length > mostUnread
    if (isShort) return void this.#parse(connection, parse, bytes)
    void this.#longBodies.run(network, oneStep(this.#hold(connection, parse, bytes)))
  }

  /** Reads nothing more from a connection until the returned function is called, which parses these bytes. */
  #hold(connection: Connection, parse: Parse, bytes: Buffer): () => void {
    const { socket, network } = connection
    network.unreadBytes += bytes.length
    socket.pause()
    return () => {
      network.unreadBytes -= bytes.length
      socket.resume()
      this.#parse(connection, parse, bytes)
    }
  }

  /** Parses a few requests at a time, until the connection is closed or its client has to read a response first. */
  #parse(connection: Connection, parse: Parse, bytes: Buffer): void {
    const { socket, limits, requests } = connection
    if (this.#owner.isOpen(connection) && hasMoreRequests(bytes, limits.httpPipelined + 1 - requests.length))
      return void this.#owner.refusePipeline(connection)
    for (let rest = bytes; rest.length > 0; ) {
      if (!this.#owner.isOpen(connection) || !socket.writable) return
      if (socket.isPaused()) return void socket.unshift(rest)
      const end = connection.isReceiving() ? longestPart : endOfRequests(rest)
      parse(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
}

/** The most bytes of one network that wait to be parsed. */
const mostUnread = 16 * 1024 * 1024

/** Between two pieces of long bodies, of 64 KiB each, while small requests are in progress: 8 MB per second for all of them. */
const pauseMs = 8

/** How much of a body is read without delay. */
const shortBody = 65_536

function* oneStep(work: () => void): Generator<undefined, void> {
  work()
  yield
}

const blankLine = '\r\n\r\n'
/** How much is parsed at once: a few requests, or a part of a body. */
const shortestPart = 512
const longestPart = 8_192

const bodyless = /^(?:GET|HEAD) /

/**
 * Whether these bytes begin with more requests without a body than that. To parse them only to find out that there are too many of them costs more
 * than everything else that is done for such a connection.
 */
export function hasMoreRequests(bytes: Buffer, most: number): boolean {
  let from = 0
  for (let count = 0; count <= most; count++) {
    const isBodyless = bodyless.test(bytes.toString('latin1', from, from + 5))
    const end = isBodyless ? bytes.indexOf(blankLine, from) : -1
    if (end < 0) return false
    from = end + blankLine.length
  }
  return true
}

/** Where the next few requests may end. A wrong guess is harmless: the parser continues where it stopped. */
function endOfRequests(bytes: Buffer): number {
  const end = bytes.length > shortestPart ? bytes.indexOf(blankLine, shortestPart) : -1
  return end < 0 ? longestPart : Math.min(longestPart, end + blankLine.length)
}
