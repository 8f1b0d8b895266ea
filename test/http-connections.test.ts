import { defineJob } from 'holdfast'
import { onTestFinished } from 'vitest'
import { run } from './cli/command.ts'
import { bareServer } from './http/bare.ts'
import { expect, test, until } from './http/door.ts'
import { get, open, type RawConnection, statusOf } from './http/sockets.ts'

const noop = defineJob('noop', { run: () => {} })

async function openMany(port: number, count: number, from?: string): Promise<RawConnection[]> {
  const all = await Promise.all(Array.from({ length: count }, () => open(port, from)))
  onTestFinished(() => {
    for (const { socket } of all) socket.destroy()
  })
  return all
}

async function openOne(port: number, from?: string): Promise<RawConnection> {
  return (await openMany(port, 1, from))[0] as RawConnection
}

test('clients that ask for the docs without end and never read cannot end a server with a small heap', async () => {
  const serving = run(['serve', '--http-port', '0'], {
    env: {
      HOLDFAST_URL: 'postgres://nobody@127.0.0.1:1/nothing',
      NODE_OPTIONS: '--max-old-space-size=64',
      HOLDFAST_HTTP_DRAIN_MS: '20000',
    },
  })
  const [, at] = await serving.says(/Serving at (\S+),/)
  const port = Number(new URL(at as string).port)
  const polite = await openOne(port, '127.0.0.2')
  const isAnswered = async (path: string) => {
    polite.socket.write(get(path))
    return statusOf(await polite.answer()) === 200
  }
  expect(await isAnswered('/livez')).toBe(true)
  const rude: RawConnection[] = []
  for (let round = 0; round < 2; round++) {
    const more = await openMany(port, 100)
    // half of them as many as fit into one packet, half as many as they may
    for (const [index, { socket }] of more.entries()) socket.write(get('/docs').repeat(index % 2 === 0 ? 1_500 : 17))
    for (let index = 0; index < 20; index++) expect(await isAnswered('/livez')).toBe(true)
    rude.push(...more)
  }
  expect(await isAnswered('/docs')).toBe(true)
  serving.signal('SIGTERM')
  await serving.says(/Stopping/)
  expect(await isAnswered('/livez')).toBe(true)
  for (const { socket } of rude) socket.destroy()
  expect(await serving.exited).toBe(0)
})

test('requests that are sent ahead are answered in order, up to a limit', async () => {
  const { port } = await bareServer({ httpPipelined: 4 }, true)
  const [some, many] = (await openMany(port, 2)) as [RawConnection, RawConnection]
  some.socket.write(['/', '/livez', '/nothing', '/v1/jobs', '/openapi.json'].map((path) => get(path)).join(''))
  const statuses = []
  for (let index = 0; index < 5; index++) statuses.push(statusOf(await some.answer()))
  expect(statuses).toEqual([200, 200, 404, 401, 200])
  many.socket.write(get('/').repeat(6))
  const refused = await many.answer()
  expect([statusOf(refused), refused]).toEqual([429, expect.stringContaining('"code":"pipeline_too_long"')])
  expect(await many.answer()).toBeNull()
})

/** More than the buffers of the system hold, so that an answer stays with the server. */
const ahead = get('/docs').repeat(150)
const generous = { httpPipelined: 1_000, httpPageRate: 1_000_000 }

test('an address gets a few large pages a second, and others get theirs', async () => {
  const { port } = await bareServer({ httpPageRate: 1 })
  const greedy = await openOne(port)
  const statuses = []
  for (const path of [
    '/docs',
    '/openapi.json',
    '/docs',
    '/docs',
    '/docs',
    '/docs',
    '/docs',
    '/docs',
    '/docs',
    '/docs',
  ]) {
    greedy.socket.write(get(path))
    statuses.push(statusOf(await greedy.answer()))
  }
  expect(new Set(statuses)).toEqual(new Set([200]))
  const refused = await until(async () => {
    greedy.socket.write(get('/docs'))
    const answer = await greedy.answer()
    return statusOf(answer) === 429 && answer
  })
  expect(refused).toMatch(/^retry-after: 1\r/m)
  const other = await openOne(port, '127.0.0.2')
  other.socket.write(get('/docs'))
  expect(statusOf(await other.answer())).toBe(200)
})

test('a client that does not take its answer is cut off in time', async () => {
  const { port, metric } = await bareServer({ ...generous, httpSendMs: 200 })
  const rude = await openOne(port)
  rude.socket.write(ahead)
  await until(async () => (await metric('holdfast_http_cut_total{reason="slow"}')) === 1, 'it is cut off')
})

test('what waits for slow clients has a limit in all, and whoever holds the most gives way', async () => {
  const { port, metric } = await bareServer(generous)
  const first = await openOne(port)
  first.socket.write(get('/docs'))
  const bytes = String(await first.answer()).length
  const small = await bareServer({ ...generous, httpUnsentBytes: Math.round(4.5 * bytes) })
  const modest = await openOne(small.port, '127.0.0.2')
  modest.socket.write(ahead)
  for (const { socket } of await openMany(small.port, 20)) socket.write(ahead)
  const cut = () => small.metric('holdfast_http_cut_total{reason="backlog"}')
  await until(async () => (await cut()) === 17, 'all but those that fit are cut off')
  for (let index = 0; index < 150; index++) expect(statusOf(await modest.answer())).toBe(200)
  expect(await metric('holdfast_http_cut_total{reason="backlog"}')).toBe(0)
})

test('at the limit a newcomer takes the place of an idle connection of whoever has the most', async () => {
  const { port } = await bareServer({ httpConnections: 10 })
  const kept = await openOne(port, '127.0.0.2')
  const crowd = await openMany(port, 9, '127.0.0.3')
  const isServed = async ({ socket, answer }: RawConnection) => {
    socket.write(get('/livez'))
    return statusOf(await answer()) === 200
  }
  for (const one of [kept, ...crowd]) expect(await isServed(one)).toBe(true)
  for (const one of await openMany(port, 3, '127.0.0.4')) expect(await isServed(one)).toBe(true)
  // those that were idle for the longest had to go
  const served = []
  for (const one of [kept, ...crowd]) served.push(await isServed(one))
  expect(served).toEqual([true, false, false, false, true, true, true, true, true, true])
})

test('a newcomer is told so if all connections are busy', async ({ open: connect, serve }) => {
  const hf = await connect({ jobs: [noop] })
  const config = { ...hf.config, httpPort: 0, httpConnections: 2 }
  const { url } = await serve(hf, { jobs: [noop], config })
  const port = Number(new URL(url).port)
  for (const { socket, answer } of await openMany(port, 2)) {
    socket.write('POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n')
    socket.write('Content-Length: 15\r\nExpect: 100-continue\r\n\r\n')
    // it is told to go on, and does not
    expect(statusOf(await answer())).toBe(100)
  }
  const late = await (await openOne(port)).answer()
  expect([statusOf(late), late]).toEqual([503, expect.stringContaining('"code":"connections_exhausted"')])
})
