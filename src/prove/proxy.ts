import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { dial, type Target } from './dial.ts'
import { type Link, makeLink, type Watcher } from './link.ts'

/** A way to the database for one process, which can be broken. */
export interface Way {
  readonly port: number
  /** Cuts the process off without a word, connections to come included. */
  stall(): void
  /** Lets everything that was held go on, in order. */
  unstall(): void
  /** Makes deaf what listens at this moment. */
  deafen(): void
  close(): Promise<void>
}

/** Opens a proxy. The target is asked for at each connection, for a restarted server may have moved. */
export async function openProxy(target: () => Target, watcher: Watcher): Promise<Way> {
  const links = new Set<Link>()
  const sockets = new Set<Socket>()
  let isStalled = false

  const server = createServer({ noDelay: true }, (client) => {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    client.on('error', () => {})
    client.pause()
    void dial(target()).then(
      (upstream) => join(client, upstream),
      () => client.resetAndDestroy(),
    )
  })

  function join(client: Socket, upstream: Socket): void {
    const link = makeLink(client, upstream, watcher)
    if (isStalled) link.stall()
    links.add(link)
    upstream.once('close', () => links.delete(link))
    client.resume()
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    stall() {
      isStalled = true
      for (const link of links) link.stall()
    },
    unstall() {
      isStalled = false
      for (const link of links) link.unstall()
    },
    deafen() {
      for (const link of links) if (link.isListening) link.blackHole()
    },
    async close() {
      for (const link of links) link.cut()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}
