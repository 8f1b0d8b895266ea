import { once } from 'node:events'
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A way to the database that the test can break without either side noticing. */
export interface Wire {
  url: string
  /** From here on whatever is sent is swallowed, as by a cut cable. */
  swallow(): void
  /** Breaks all connections, and lets new ones through again. */
  mend(): void
}

/** Puts a wire between a test and its database. */
export async function wireTo(url: string): Promise<Wire> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let isSwallowing = false
  const server = createServer((near) => {
    const far = dial(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', (chunk) => isSwallowing || to.write(chunk))
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const through = new URL(url)
  through.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: through.href,
    swallow() {
      isSwallowing = true
    },
    mend() {
      isSwallowing = false
      for (const socket of sockets) socket.destroy()
    },
  }
}
