import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { ProxyConnection, type Watcher } from './proxy-connection.ts'
import { connectTo, type Target } from './target.ts'

/** What a proxy does with connections, those to come included. */
type Mode = 'forward' | 'stall' | 'discard' | 'refuse'

/** A proxy in front of Postgres that shows each statement to a watcher and can break every connection. */
export class FaultProxy {
  readonly #target: () => Target
  readonly #watcher: Watcher
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections = new Set<ProxyConnection>()
  #mode: Mode = 'forward'

  /** The target is asked for at each connection, because a restarted server may have moved. */
  constructor(target: () => Target, watcher: Watcher) {
    this.#target = target
    this.#watcher = watcher
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client))
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Holds everything in both directions, without closing anything. */
  stall(): void {
    this.#mode = 'stall'
    for (const connection of this.#connections) connection.stall()
  }

  /** Forwards everything that a stall has held, in order. */
  unstall(): void {
    this.#mode = 'forward'
    for (const connection of this.#connections) connection.unstall()
  }

  /** Discards everything in both directions. A connection that one side closes is closed on the other. */
  discard(): void {
    this.#mode = 'discard'
    for (const connection of this.#connections) connection.discard()
  }

  /** Discards everything on the connections that listen for notifications at this moment. */
  discardNotifications(): void {
    for (const connection of this.#connections) if (connection.isListening) connection.discard()
  }

  /** Closes all connections, and new ones at once. */
  refuse(): void {
    this.#mode = 'refuse'
    this.#cutAll()
  }

  /** Closes all connections and forwards new ones. */
  restore(): void {
    this.#mode = 'forward'
    this.#cutAll()
  }

  async close(): Promise<void> {
    this.#cutAll()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    client.on('error', () => {})
    if (this.#mode === 'refuse') {
      client.destroy()
      return
    }
    this.#sockets.add(client)
    client.once('close', () => this.#sockets.delete(client))
    client.pause()
    void connectTo(this.#target()).then(
      (upstream) => this.#join(client, upstream),
      () => client.resetAndDestroy(),
    )
  }

  #join(client: Socket, upstream: Socket): void {
    if (client.destroyed) {
      upstream.destroy()
      return
    }
    const connection = new ProxyConnection(client, upstream, this.#watcher)
    if (this.#mode === 'stall') connection.stall()
    if (this.#mode === 'discard') connection.discard()
    this.#connections.add(connection)
    upstream.once('close', () => this.#connections.delete(connection))
    client.resume()
  }

  #cutAll(): void {
    for (const connection of this.#connections) connection.cut()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** Opens a proxy on a free local port. */
export async function openProxy(target: () => Target, watcher: Watcher): Promise<FaultProxy> {
  const proxy = new FaultProxy(target, watcher)
  await proxy.listen()
  return proxy
}
