/**
 * Keeps the connections of a server from hurting each other. A client may open many, send requests ahead and never read an answer. What is held for
 * it stays small, and keeps nobody else out:
 *
 * - One request of a connection is handled at a time, and the next one only when the answer before it has left. So a connection holds at most one
 *   answer. A client that sends too many requests ahead is cut off. Node parses all that one read has brought, some 2,000 small requests, and keeps
 *   them until the connection has closed; so after some thousands nobody is read until then, or a thousand such clients would fill the heap in one
 *   turn of the event loop.
 * - An answer must be taken in time. All answers that wait share a budget of bytes; when it is exceeded, the network that holds the most of it loses
 *   its oldest.
 * - The number of connections is limited. Beyond the limit, a new connection replaces an idle or stalled one of the network that has the most, as long
 *   as that is no smaller than its own. Otherwise it is refused.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import { Connection, type ConnectionLimits, type ConnectionOwner, Network } from './connection.ts'
import { networkOf } from './network.ts'
import { problemBytes } from './problem.ts'

/** Why the server ended a connection: an answer not taken in time, too many bytes not taken, room for others, or too many requests sent ahead. */
export type Cut = 'slow' | 'backlog' | 'room' | 'pipelined' | 'refused'

/** Told about connections. */
export interface ConnectionObserver {
  opened(): void
  closed(): void
  cut(reason: Cut): void
}

/** Handles one request. Resolves when its answer is written, though perhaps not taken. Never rejects. */
export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse, connection: Connection) => Promise<void>

/** All connections of a server. */
export class Connections implements ConnectionOwner {
  readonly limits: ConnectionLimits
  readonly #handle: Handle
  readonly #observer: ConnectionObserver | undefined
  readonly #bySocket = new Map<Socket, Connection>()
  readonly #networks = new Map<string, Network>()
  readonly #checking: NodeJS.Timeout
  /** Connections that were cut off for what they sent ahead, how many requests they still hold, and who is not read until they are gone. */
  readonly #ending = new Set<Socket>()
  #dropped = 0
  #paused: Socket[] = []
  /** Requests that wait for the answer before them, on all connections. */
  #ahead = 0
  #unsent = 0
  #unsentBytes = 0
  #isClosing = false
  #isDrained = false

  constructor(server: Server, limits: ConnectionLimits, handle: Handle, observer?: ConnectionObserver) {
    this.limits = limits
    this.#handle = handle
    this.#observer = observer
    server.on('connection', (socket: Socket) => this.#open(socket))
    server.on('request', (incoming, outgoing) => this.#receive(incoming, outgoing))
    this.#checking = setInterval(() => this.#cutSlow(), Math.min(1_000, limits.httpSendMs / 4)).unref()
  }

  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Makes each answer from here on the last one of its connection. */
  close(): void {
    this.#isClosing = true
  }

  /** Ends idle connections, now and as soon as they become idle. */
  endIdle(): void {
    this.#isDrained = true
    for (const { idle } of this.#networks.values()) for (const { socket } of idle) socket.destroy()
  }

  /** Ends all connections, whatever they do. */
  end(): void {
    for (const socket of this.#bySocket.keys()) socket.destroy()
  }

  stop(): void {
    clearInterval(this.#checking)
  }

  isAnswering(socket: Socket): boolean {
    return this.#bySocket.get(socket)?.isAnswering() ?? false
  }

  /** Counts what the client of a connection has not taken, and makes others give way if that is too much. */
  hold(connection: Connection): void {
    const { socket, network } = connection
    const bytes = socket.writableLength
    if (bytes === 0 || connection.unsentBytes > 0 || !this.#bySocket.has(socket)) return
    connection.unsentBytes = bytes
    connection.unsentSinceMs = performance.now()
    network.unsent.add(connection)
    network.unsentBytes += bytes
    this.#unsentBytes += bytes
    this.#unsent += 1
    // one answer alone may be as large as it is
    while (this.#unsentBytes > this.limits.httpUnsentBytes && this.#unsent > 1) this.#cutGreediest()
  }

  release(connection: Connection): void {
    const { network, unsentBytes } = connection
    if (unsentBytes === 0) return
    connection.unsentBytes = 0
    network.unsent.delete(connection)
    network.unsentBytes -= unsentBytes
    this.#unsentBytes -= unsentBytes
    this.#unsent -= 1
  }

  #open(socket: Socket): void {
    const name = networkOf(socket.remoteAddress ?? null)
    const network = this.#networks.get(name) ?? new Network()
    if (this.#bySocket.size >= this.limits.httpConnections && !this.#makeRoom(network)) return void this.#refuse(socket)
    const connection = new Connection(this, socket, network)
    this.#networks.set(name, network)
    this.#bySocket.set(socket, connection)
    network.connections.add(connection)
    network.idle.add(connection)
    this.#observer?.opened()
    socket.once('close', () => {
      this.#forget(connection)
      if (network.connections.size === 0 && this.#networks.get(name) === network) this.#networks.delete(name)
    })
  }

  #forget(connection: Connection): void {
    const { socket, network, requests } = connection
    if (!this.#bySocket.delete(socket)) return
    this.release(connection)
    this.#ahead -= Math.max(0, requests.length - 1)
    requests.length = 0
    network.idle.delete(connection)
    network.connections.delete(connection)
    this.#observer?.closed()
  }

  #receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = this.#bySocket.get(incoming.socket)
    if (!connection) return void this.#drop(1) // the connection was cut, and this was among its last bytes
    const { requests } = connection
    requests.push([incoming, outgoing])
    if (requests.length === 1) return void this.#next(connection)
    this.#ahead += 1
    const { httpPipelined, httpConnections } = this.limits
    // in all, one for each connection: clients that send ahead are rare, and none of them needs to
    if (requests.length > httpPipelined + 1 || this.#ahead > httpConnections) this.#refusePipeline(connection)
  }

  #next(connection: Connection): void {
    const { network, requests, socket } = connection
    const [first] = requests
    if (!first) return void (this.#isDrained ? socket.destroy() : network.idle.add(connection))
    network.idle.delete(connection)
    const [incoming, outgoing] = first
    outgoing.once('close', () => {
      this.release(connection)
      requests.shift()
      if (requests.length > 0) this.#ahead -= 1
      // after the last answer nothing that was sent ahead is done, since nobody could tell the client
      if (!socket.writable || !this.#bySocket.has(socket)) return
      if (requests.length === 0) return void this.#next(connection)
      // others come first, or a client that sends ahead would have all its answers made in one turn of the event loop
      setImmediate(() => this.#bySocket.has(socket) && this.#next(connection))
    })
    void this.#handle(incoming, outgoing, connection)
  }

  #makeRoom(newcomer: Network): boolean {
    const crowded = mostOf(this.#networks, ({ idle, unsent, connections }) =>
      idle.size + unsent.size === 0 ? 0 : connections.size,
    )
    if (!crowded || crowded.connections.size < newcomer.connections.size) return false
    for (const oldest of [...firstOf(crowded.idle), ...firstOf(crowded.unsent)].slice(0, 1)) this.#cut(oldest, 'room')
    return true
  }

  #cutGreediest(): void {
    const greediest = mostOf(this.#networks, ({ unsentBytes }) => unsentBytes)
    for (const oldest of firstOf(greediest?.unsent)) this.#cut(oldest, 'backlog')
  }

  #cutSlow(): void {
    const sinceMs = performance.now() - this.limits.httpSendMs
    for (const { unsent } of this.#networks.values())
      for (const connection of unsent) {
        if (connection.unsentSinceMs > sinceMs) break
        this.#cut(connection, 'slow')
      }
  }

  #cut(connection: Connection, reason: Cut): void {
    this.#forget(connection)
    this.#observer?.cut(reason)
    // after a plain end, the system would keep for minutes what the client did not take
    connection.socket.resetAndDestroy()
  }

  #refusePipeline(connection: Connection): void {
    const { socket, requests } = connection
    const held = requests.length
    if (!connection.isAnswering()) socket.write(problemBytes(tooManyAhead))
    this.#forget(connection)
    this.#observer?.cut('pipelined')
    this.#ending.add(socket)
    this.#drop(held)
    withoutStacks(socket)
    socket.once('close', () => {
      this.#ending.delete(socket)
      if (this.#ending.size > 0) return
      this.#dropped = 0
      for (const paused of this.#paused) paused.resume()
      this.#paused = []
    })
    socket.destroy()
  }

  #drop(requests: number): void {
    this.#dropped += requests
    if (this.#dropped < mostDropped || this.#paused.length > 0 || this.#ending.size === 0) return
    this.#paused = [...this.#bySocket.keys()].filter((socket) => !socket.isPaused())
    for (const socket of this.#paused) socket.pause()
  }

  #refuse(socket: Socket): void {
    this.#observer?.cut('refused')
    socket.end(problemBytes(tooManyConnections), () => socket.destroy())
  }
}

/** Requests of connections that were cut off that may be in memory before nobody is read until they are gone. */
const mostDropped = 5_000

/** Node aborts each request of a closed connection with an error. Their stacks would cost more than all the rest, and nobody reads them. */
function withoutStacks(socket: Socket): void {
  const limit = Error.stackTraceLimit
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0
  })
  socket.once('close', () => {
    Error.stackTraceLimit = limit
  })
}

const tooManyAhead = new HoldfastError(
  'pipeline_too_long',
  'Too many requests were sent ahead on one connection. Wait for answers, or open more connections.',
)
const tooManyConnections = new HoldfastError(
  'connections_exhausted',
  'This server holds as many connections as it may, and all are in use. Try again later.',
)

function mostOf(networks: Map<string, Network>, weight: (network: Network) => number): Network | undefined {
  let most: Network | undefined
  for (const network of networks.values()) if (weight(network) > (most ? weight(most) : 0)) most = network
  return most
}

/** The first one, if there is any. */
function firstOf(connections: Set<Connection> | undefined): Connection[] {
  const first = connections?.values().next()
  return first && !first.done ? [first.value] : []
}
