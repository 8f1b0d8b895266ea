import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Connections } from './connections.ts'
import { hasMoreRequests } from './socket-reads.ts'

const get = 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n'

test.each([
  ['as many requests as allowed', get.repeat(3), false],
  ['one more', get.repeat(4), true],
  ['one more that is not complete', get.repeat(4).slice(0, -1), false],
  ['blank lines inside a body', post.repeat(4), false],
  ['requests after one with a body', post + get.repeat(4), false],
  ['nothing', '', false],
])('%s: too many is known without parsing only if it is certain', (_, text, expected) => {
  expect(hasMoreRequests(Buffer.from(text), 3)).toBe(expected)
})

const limits = {
  httpConnections: 100,
  httpPipelined: 16,
  httpSendMs: 60_000,
  httpUnsentBytes: 1_000_000,
  httpLingerMs: 5_000,
  httpLingerBytes: 64_000_000,
}

/** How long a server takes to read a body of 4 MiB, and how many bytes it read. */
async function readLongBody(isBusy: () => boolean): Promise<{ ms: number; bytes: number }> {
  const server = createServer()
  const connections = new Connections(
    server,
    limits,
    async (incoming, outgoing) => {
      let bytes = 0
      for await (const part of incoming) bytes += part.length
      outgoing.end(String(bytes))
    },
    { isBusy },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const sinceMs = performance.now()
  const { port } = server.address() as AddressInfo
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: Buffer.alloc(4_194_304) })
  const read = { bytes: Number(await answer.text()), ms: performance.now() - sinceMs }
  connections.end()
  connections.stop()
  server.close()
  return read
}

test('a long body is read slowly while small requests are in progress, and all of it arrives', async () => {
  const { ms, bytes } = await readLongBody(() => true)
  expect(bytes).toBe(4_194_304)
  // at most 64 KiB per 8 ms, after the first of them
  expect(ms).toBeGreaterThan(400)
})

test('without small requests in progress, a long body is not held up', async () => {
  let asked = 0
  const { bytes } = await readLongBody(() => {
    asked += 1
    return false
  })
  expect(bytes).toBe(4_194_304)
  expect(asked).toBeGreaterThan(5)
})
