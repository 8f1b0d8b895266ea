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
  /** Those without a request under way; the one that has been idle for the longest comes first. */
  readonly idle = new Set<Connection>()
  /** Those whose client has not taken an answer; the one that has waited for the longest comes first. */
  readonly unsent = new Set<Connection>()
  unsentBytes = 0
}

/** What a connection asks of the server that holds it. */
export interface ConnectionOwner {
  readonly limits: ConnectionLimits
  readonly isClosing: boolean
  hold(connection: Connection): void
  release(connection: Connection): void
}

/** One connection, as seen by whoever answers a request on it. */
export class Connection {
  readonly socket: Socket
  readonly network: Network
  /** Requests without a complete answer; the first one is being handled. */
  readonly requests: [IncomingMessage, ServerResponse][] = []
  unsentBytes = 0
  unsentSinceMs = 0
  readonly #owner: ConnectionOwner

  constructor(owner: ConnectionOwner, socket: Socket, network: Network) {
    this.#owner = owner
    this.socket = socket
    this.network = network
  }

  get limits(): ConnectionLimits {
    return this.#owner.limits
  }

  /** Whether the server stops, so that the next answer is the last one on this connection. */
  get isClosing(): boolean {
    return this.#owner.isClosing
  }

  /** Counts what was written and not taken by the client, until `taken` or the end of the answer. */
  written(): void {
    this.#owner.hold(this)
  }

  taken(): void {
    this.#owner.release(this)
  }

  /** The answer is written, and only the rest of a refused body is read: the connection may be ended to make room. */
  lingers(): void {
    this.network.idle.add(this)
  }

  /** Whether bytes of an answer may be on their way, so that anything else would be taken for a part of it. */
  isAnswering(): boolean {
    return this.requests.some(([, outgoing]) => outgoing.headersSent && !outgoing.writableFinished)
  }
}
