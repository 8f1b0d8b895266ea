import type { Socket } from 'node:net'
import {
  isEncryptionRequest,
  type Message,
  makeMessageReader,
  makeStatementFinder,
  type SentStatement,
} from './protocol.ts'

/** When to hold a statement: before the server receives it, or after the server has run it and before its response arrives. */
export type Moment = 'before' | 'after'

/** Whether to hold a statement, and when. */
export type Verdict = Moment | 'pass'

/** Sees every statement that goes through a proxy, and decides which ones are held. */
export interface Watcher {
  /** A statement is about to be forwarded. */
  sent(statement: SentStatement): Verdict
  /** A statement is held. It stays so until its connection is released or cut. */
  held(statement: string, connection: ProxyConnection): void
}

type Side = 'client' | 'server'

interface Request {
  name: string
  isHeldAfter: boolean
}

/** One connection through a proxy: a client, and the server that it talks to. */
export class ProxyConnection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #watcher: Watcher
  readonly #statementIn = makeStatementFinder()
  /** Requests whose ReadyForQuery is still to come. The server sends the first one without a request, when the session is up. */
  readonly #unanswered: Request[] = [{ name: 'connect', isHeldAfter: false }]
  #current: Request | undefined
  #toServer: Buffer[] = []
  #toClient: Buffer[] = []
  #isRequestHeld = false
  #isResponseHeld = false
  #isStalled = false
  #isDiscarding = false
  #isListening = false
  #closedBy: Side | undefined

  constructor(client: Socket, server: Socket, watcher: Watcher) {
    this.#client = client
    this.#server = server
    this.#watcher = watcher
    this.#pipe('client', client, (message) => this.#receiveRequest(message))
    this.#pipe('server', server, (message) => this.#receiveResponse(message))
  }

  /** Whether the client listens for notifications. */
  get isListening(): boolean {
    return this.#isListening
  }

  /** Forwards a statement or a response that is held. */
  release(): void {
    this.#isRequestHeld = false
    this.#isResponseHeld = false
    this.#flush()
  }

  /** Breaks the connection on both sides, whatever is in progress. */
  cut(): void {
    this.#isDiscarding = true
    this.#client.resetAndDestroy()
    this.#server.destroy()
  }

  /** Holds everything in both directions, and even hides that a side has closed, as a network without a route does. */
  stall(): void {
    this.#isStalled = true
  }

  /** Forwards everything that a stall has held, in order. */
  unstall(): void {
    this.#isStalled = false
    this.#flush()
  }

  /** Discards everything from now on, while both sides believe that they are connected. */
  discard(): void {
    this.#isDiscarding = true
  }

  #pipe(side: Side, socket: Socket, receive: (message: Message) => void): void {
    const read = makeMessageReader(side)
    socket.on('data', (chunk: Buffer) => {
      if (this.#isDiscarding) return
      for (const message of read(chunk)) receive(message)
      this.#flush()
    })
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => {
      this.#closedBy ??= side
      if (this.#isDiscarding) this.cut()
      else this.#flush()
    })
  }

  #receiveRequest(message: Message): void {
    if (message.type === '' && isEncryptionRequest(message.raw)) {
      this.#client.write('N')
      return
    }
    const statement = this.#statementIn(message)
    if (statement && !this.#current) this.#begin(statement)
    this.#toServer.push(message.raw)
    if (message.type !== 'S' && message.type !== 'Q') return
    this.#unanswered.push(this.#current ?? { name: 'sync', isHeldAfter: false })
    this.#current = undefined
  }

  #begin(statement: SentStatement): void {
    const verdict = this.#watcher.sent(statement)
    this.#current = { name: statement.name, isHeldAfter: verdict === 'after' }
    this.#isListening ||= statement.isListen
    if (verdict !== 'before') return
    this.#isRequestHeld = true
    this.#watcher.held(statement.name, this)
  }

  #receiveResponse(message: Message): void {
    const request = this.#unanswered[0]
    if (request?.isHeldAfter) this.#isResponseHeld = true
    this.#toClient.push(message.raw)
    if (message.type !== 'Z') return
    this.#unanswered.shift()
    if (request?.isHeldAfter) this.#watcher.held(request.name, this)
  }

  #flush(): void {
    if (this.#isStalled) return
    if (!this.#isRequestHeld) this.#toServer = forward(this.#toServer, this.#server)
    if (!this.#isResponseHeld) this.#toClient = forward(this.#toClient, this.#client)
    if (this.#closedBy === 'client') this.#server.end()
    // a response that is held is lost with its connection
    if (this.#closedBy === 'server' && this.#isResponseHeld) this.#client.destroy()
    if (this.#closedBy === 'server') this.#client.end()
  }
}

/** Writes all messages at once: a large result has a message per row. Returns what is left to write. */
function forward(messages: Buffer[], socket: Socket): Buffer[] {
  if (messages.length === 0) return messages
  if (socket.writable) socket.write(messages.length === 1 ? (messages[0] as Buffer) : Buffer.concat(messages))
  return []
}
