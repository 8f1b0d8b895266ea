/**
 * Protects the connections of a server from each other. A client may open many, pipeline requests, and never read a response. What the server
 * holds for it stays small and blocks nobody else:
 *
 * - Each connection handles one request at a time, and the next one only once the previous response has been sent. So a connection holds at
 *   most one response. A client that pipelines too many requests is disconnected, and what it sent beyond them is not even parsed.
 * - Little is parsed in one turn of the event loop, and networks take turns (see socket-reads.ts). So a thousand clients that send at once cost
 *   others no more than one.
 * - A response must be read in time. All responses that wait share a budget of bytes; when it is exceeded, the network that holds the most of
 *   it loses its oldest.
 * - The number of connections is limited. Beyond the limit, a new connection replaces an idle or stalled one of the network that has the most, as
 *   long as that network is no smaller than its own. Otherwise it is refused.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import { Connection, type ConnectionLimits, type ConnectionOwner, Network } from './connection.ts'
import { networkOf } from './network.ts'
import { problemBytes } from './problem.ts'
import { SocketReads } from './socket-reads.ts'

/** Why the server closed a connection: a response not read in time, too many unread bytes, room for others, too many pipelined requests, or no room. */
export type Cut = 'slow' | 'backlog' | 'room' | 'pipelined' | 'refused'

/** What happens to connections, for metrics. */
export interface ConnectionObserver {
  opened(): void
  closed(): void
  cut(reason: Cut): void
}

/** Handles one request. Resolves when its response is written, though the client may not have read it. Never rejects. */
export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse, connection: Connection) => Promise<void>

/** What else connections may be given. */
export interface ConnectionOptions {
  observer?: ConnectionObserver
  /** Whether small requests are in progress, for which large bodies are read more slowly. */
  isBusy?: () => boolean
}

/** All connections of a server. */
export class Connections implements ConnectionOwner {
  readonly limits: ConnectionLimits
  readonly #handle: Handle
  readonly #observer: ConnectionObserver | undefined
  readonly #bySocket = new Map<Socket, Connection>()
  readonly #networks = new Map<string, Network>()
  readonly #checking: NodeJS.Timeout
  readonly #reads: SocketReads
  /** Pipelined requests that wait for the response before them, on all connections. */
  #ahead = 0
  #unsent = 0
  #unsentBytes = 0
  #isClosing = false
  #isDrained = false

  constructor(server: Server, limits: ConnectionLimits, handle: Handle, { observer, isBusy }: ConnectionOptions = {}) {
    this.limits = limits
    this.#handle = handle
    this.#observer = observer
    this.#reads = new SocketReads({
      isOpen: (connection) => this.#bySocket.has(connection.socket),
      cut: (connection) => this.#cut(connection, 'backlog'),
      refusePipeline: (connection) => this.#refusePipeline(connection),
      ...(isBusy ? { isBusy } : {}),
    })
    server.on('connection', (socket: Socket) => this.#open(socket))
    server.on('request', (incoming, outgoing) => this.#receive(incoming, outgoing))
    // Node has detached its parser
    server.on('connect', ({ socket }: IncomingMessage) => this.#forget(this.#bySocket.get(socket)))
    this.#checking = setInterval(() => this.#cutSlow(), Math.min(1_000, limits.httpSendMs / 4)).unref()
  }

  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Makes each response from now on the last one on its connection. */
  close(): void {
    this.#isClosing = true
  }

  /** Closes idle connections, now and as soon as they become idle. */
  endIdle(): void {
    this.#isDrained = true
    for (const { idle } of this.#networks.values()) for (const { socket } of idle) socket.destroy()
  }

  /** Closes all connections. */
  end(): void {
    for (const socket of this.#bySocket.keys()) socket.destroy()
  }

  stop(): void {
    clearInterval(this.#checking)
  }

  isAnswering(socket: Socket): boolean {
    return this.#bySocket.get(socket)?.isAnswering() ?? false
  }

  /** Counts what the client of a connection has not read, and closes connections if that is too much. */
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
    // a single response may exceed the budget
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
    this.#reads.watch(connection)
    socket.once('close', () => {
      this.#forget(connection)
      if (network.connections.size === 0 && this.#networks.get(name) === network) this.#networks.delete(name)
    })
  }

  #forget(connection: Connection | undefined): void {
    if (!connection || !this.#bySocket.delete(connection.socket)) return
    const { network, requests } = connection
    this.release(connection)
    this.#ahead -= Math.max(0, requests.length - 1)
    requests.length = 0
    network.idle.delete(connection)
    network.connections.delete(connection)
    this.#observer?.closed()
  }

  #receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = this.#bySocket.get(incoming.socket)
    if (!connection) return // the connection was closed, and this was among its last bytes
    const { requests } = connection
    requests.push([incoming, outgoing])
    if (requests.length === 1) return void this.#next(connection)
    this.#ahead += 1
    const { httpPipelined, httpConnections } = this.limits
    // in total, one for each connection: clients that pipeline are rare, and none of them has to
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
      // after the last response, pipelined requests are not handled, because there would be no response to the client
      if (!socket.writable || !this.#bySocket.has(socket)) return
      if (requests.length === 0) return void this.#next(connection)
      // others come first, or all pipelined requests of a client would be handled in one turn of the event loop
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
    // after a plain end, the operating system would keep the unread bytes for minutes
    connection.socket.resetAndDestroy()
  }

  #refusePipeline(connection: Connection): void {
    const { socket } = connection
    if (!connection.isAnswering()) socket.write(problemBytes(tooManyAhead))
    this.#forget(connection)
    this.#observer?.cut('pipelined')
    withoutStacks(socket)
    socket.destroy()
  }

  #refuse(socket: Socket): void {
    this.#observer?.cut('refused')
    socket.end(problemBytes(tooManyConnections), () => socket.destroy())
  }
}

/** Node aborts each request of a closed connection with an error. Nobody reads their stacks, which would cost more than everything else. */
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
  'Too many pipelined requests on one connection. Wait for responses, or open more connections.',
)
const tooManyConnections = new HoldfastError(
  'connections_exhausted',
  'This server has reached its connection limit, and all connections are in use. Try again later.',
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
