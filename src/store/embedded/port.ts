import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

// Below the ports that kernels hand out to outgoing connections (32768 and up): from there, a client that calls again
// and again while Postgres restarts can be given the very port it calls, meet itself, and keep Postgres off it.
const lowest = 20_000
const highest = 32_000

/** A loopback port that is free at this moment. Another process may still be faster, so the caller must retry. */
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
