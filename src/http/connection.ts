import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Config } from '../config/config.ts'

/** The settings that limit connections. */
export type ConnectionLimits = Pick<
  Config,
  'httpConnections' | 'httpPipelined' | 'httpSendMs' | 'httpUnsentBytes' | 'httpLingerMs' | 'httpLingerBytes'
>

/** The connections from one network. */
export class Network {
  readonly connections = new Set<Connection>()
  /** Connections without a request, the longest idle first. */
  readonly idle = new Set<Connection>()
  /** Connections whose client has not read a response, the longest waiting first. */
  readonly unsent = new Set<Connection>()
  unsentBytes = 0
  /** Bytes received from them that wait to be parsed. */
  unreadBytes = 0
}

/** What a connection needs from its server. */
export interface ConnectionOwner {
  readonly limits: ConnectionLimits
  readonly isClosing: boolean
  hold(connection: Connection): void
  release(connection: Connection): void
}

/** One connection, as request handlers see it. */
export class Connection {
  readonly socket: Socket
  readonly network: Network
  /** Requests without a complete response; the first one is being handled. */
  readonly requests: [IncomingMessage, ServerResponse][] = []
  unsentBytes = 0
  unsentSinceMs = 0
  /** How much of the body that is arriving has been read. */
  bodyBytes = 0
  readonly #owner: ConnectionOwner

  constructor(owner: ConnectionOwner, socket: Socket, network: Network) {
    this.#owner = owner
    this.socket = socket
    this.network = network
  }

  get limits(): ConnectionLimits {
    return this.#owner.limits
  }

  /** Whether the server is stopping, so that the next response is the last one on this connection. */
  get isClosing(): boolean {
    return this.#owner.isClosing
  }

  /** Counts what was written but not read by the client, until `taken` or the end of the response. */
  written(): void {
    this.#owner.hold(this)
  }

  taken(): void {
    this.#owner.release(this)
  }

  /** Marks a connection whose response is written, and on which only the rest of a refused body is read: it may be closed to make room. */
  lingers(): void {
    this.network.idle.add(this)
  }

  /** Whether the body of its last request is still arriving. */
  isReceiving(): boolean {
    return this.requests.at(-1)?.[0].complete === false
  }

  /** Whether a response may be partly sent, so that other bytes would be taken for a part of it. */
  isAnswering(): boolean {
    return this.requests.some(([, outgoing]) => outgoing.headersSent && !outgoing.writableFinished)
  }
}
