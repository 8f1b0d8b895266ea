import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

// Below the ports that kernels assign to outgoing connections (32768 and up). Otherwise a client that keeps reconnecting while Postgres restarts
// could be assigned the port that it connects to, connect to itself, and keep Postgres from listening.
const lowest = 20_000
const highest = 32_000

/** A loopback port that is free at the moment. Another process may take it first, so the caller must retry. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(lowest, highest)
    if (await isFree(port)) return port
  }
  throw new Error(`No free port between ${lowest} and ${highest} on 127.0.0.1.`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
