import type { Socket } from 'node:net'
import { type Asked, isEncryptionRequest, type Message, makeNamer, makeReader } from './wire.ts'

/** What to do with a statement: pass it on, hold it before the server sees it, or hold its answer once the server is done. */
export type Verdict = 'pass' | 'before' | 'after'

/** Watches what goes through a proxy. */
export interface Watcher {
  /** A statement is about to be passed on. */
  asked(statement: Asked): Verdict
  /** A statement is held, as its verdict said; it goes on when released. */
  held(statement: string, link: Link): void
}

/** One connection through the proxy. */
export interface Link {
  /** Lets a held statement or answer go on. */
  release(): void
  /** Breaks the connection on both sides, whatever is under way. */
  cut(): void
  /** Holds everything, both ways, and even the news that a side has closed: as a network that passes nothing does. */
  stall(): void
  unstall(): void
  /** Swallows everything from here on, while both sides believe that they are connected. */
  blackHole(): void
  readonly isListening: boolean
}

interface Cycle {
  name: string
  isAwaited: boolean
}

/** Joins a client and a server, and lets the watcher see each statement. */
export function makeLink(client: Socket, server: Socket, watcher: Watcher): Link {
  const fromClient = makeReader('client')
  const fromServer = makeReader('server')
  const nameOf = makeNamer()
  // a server says once that it is ready before anything was asked: when the session stands
  const cycles: Cycle[] = [{ name: 'connect', isAwaited: false }]
  let current: Cycle | undefined
  let toServer: Buffer[] = []
  let toClient: Buffer[] = []
  let isRequestHeld = false
  let isAnswerHeld = false
  let isStalled = false
  let isLost = false
  let isListening = false
  let closed: 'client' | 'server' | undefined

  function flush(): void {
    if (isStalled) return
    if (!isRequestHeld) {
      for (const raw of toServer) if (server.writable) server.write(raw)
      toServer = []
    }
    if (!isAnswerHeld) {
      for (const raw of toClient) if (client.writable) client.write(raw)
      toClient = []
    }
    if (closed === 'client') server.end()
    // an answer that is held back dies with the connection, as it would on a wire
    if (closed === 'server' && isAnswerHeld) client.destroy()
    if (closed === 'server') client.end()
  }

  function begin(asked: Asked): void {
    const verdict = watcher.asked(asked)
    current = { name: asked.name, isAwaited: verdict === 'after' }
    isListening ||= asked.isListen
    if (verdict !== 'before') return
    isRequestHeld = true
    watcher.held(asked.name, link)
  }

  function hearClient(message: Message): void {
    if (message.type === '' && isEncryptionRequest(message.raw)) {
      client.write('N')
      return
    }
    const asked = nameOf(message)
    if (asked && !current) begin(asked)
    toServer.push(message.raw)
    if (message.type !== 'S' && message.type !== 'Q') return
    cycles.push(current ?? { name: 'sync', isAwaited: false })
    current = undefined
  }

  function hearServer(message: Message): void {
    const first = cycles[0]
    if (first?.isAwaited) isAnswerHeld = true
    toClient.push(message.raw)
    if (message.type !== 'Z') return
    cycles.shift()
    if (first?.isAwaited) watcher.held(first.name, link)
  }

  function pipe(socket: Socket, side: 'client' | 'server'): void {
    const read = side === 'client' ? fromClient : fromServer
    const hear = side === 'client' ? hearClient : hearServer
    socket.on('data', (chunk: Buffer) => {
      if (isLost) return
      for (const message of read(chunk)) hear(message)
      flush()
    })
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => {
      closed ??= side
      if (isLost) cut()
      else flush()
    })
  }

  function cut(): void {
    isLost = true
    client.resetAndDestroy()
    server.destroy()
  }

  const link: Link = {
    release() {
      isRequestHeld = false
      isAnswerHeld = false
      flush()
    },
    cut,
    stall() {
      isStalled = true
    },
    unstall() {
      isStalled = false
      flush()
    },
    blackHole() {
      isLost = true
    },
    get isListening() {
      return isListening
    },
  }
  pipe(client, 'client')
  pipe(server, 'server')
  return link
}
