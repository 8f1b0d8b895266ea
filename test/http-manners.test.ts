import { defineJob } from 'holdfast'
import { bareServer } from './http/bare.ts'
import { expect, problem, test } from './http/door.ts'
import { get, open, statusOf } from './http/sockets.ts'

const noop = defineJob('noop', { run: () => {} })

test('a server that stops answers what comes on kept connections, and says that it was the last answer', async () => {
  const { port, server } = await bareServer({ httpDrainMs: 20_000 })
  const kept = await Promise.all(Array.from({ length: 200 }, () => open(port)))
  const ask = (path: string) =>
    Promise.all(
      kept.map(async ({ socket, answer }) => {
        socket.write(get(path))
        return answer()
      }),
    )
  for (const answer of await ask('/livez')) expect(answer).toMatch(/^connection: keep-alive/im)
  const stopping = server.stop()
  for (const answer of await ask('/')) {
    expect(statusOf(answer)).toBe(200)
    expect(answer).toMatch(/^connection: close/im)
  }
  // nobody is left to wait for
  await stopping
  for (const { answer } of kept) expect(await answer()).toBeNull()
})

test('a server that stops ends kept connections that send nothing', async () => {
  const { port, server } = await bareServer({ httpDrainMs: 50 })
  const [used, unused] = await Promise.all([open(port), open(port)])
  used.socket.write(get('/'))
  expect(statusOf(await used.answer())).toBe(200)
  await server.stop()
  expect(await Promise.all([used.answer(), unused.answer()])).toEqual([null, null])
})

test.for([
  ['with its length', (bytes: number) => `Content-Length: ${bytes}\r\n\r\n`],
  ['in chunks', (bytes: number) => `Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n`],
] as const)(
  'a client that writes all of a large body %s before it reads is told that it is too large',
  async ([, headOf], { open: connect, serve }) => {
    const hf = await connect({ jobs: [noop] })
    const { url } = await serve(hf, { jobs: [noop] })
    const { socket, answer } = await open(Number(new URL(url).port))
    const body = Buffer.alloc(24_000_000, 'x')
    const head = `POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headOf(body.length)}`
    socket.write(head)
    const written = await new Promise((resolve) => socket.write(body, (error) => resolve(error ?? 'written')))
    expect(written).toBe('written')
    if (head.includes('chunked')) socket.write('\r\n0\r\n\r\n')
    const refused = await answer()
    expect([statusOf(refused), refused]).toEqual([413, expect.stringContaining('"code":"body_too_large"')])
    expect(await answer()).toBeNull()
  },
)

test('the rest of a refused body is read up to a limit of bytes and of time', async () => {
  const endless = 'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
  const few = await open((await bareServer({ httpLingerBytes: 100_000, httpLingerMs: 60_000 }, true)).port)
  few.socket.write(`${endless}3d090\r\n${'x'.repeat(250_000)}`)
  const short = await open((await bareServer({ httpLingerMs: 50 }, true)).port)
  short.socket.write(endless)
  for (const { answer, over, socket } of [few, short]) {
    expect(statusOf(await answer())).toBe(401)
    socket.resume()
    await over
  }
})

test('a client that asks before it sends a body is refused without having sent it', async () => {
  const { port } = await bareServer({ httpLingerMs: 60_000 }, true)
  const { socket, answer } = await open(port)
  socket.write('POST /v1/jobs HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n')
  expect(statusOf(await answer())).toBe(401)
  expect(await answer()).toBeNull()
})

test('without keys no page of another origin gets in, be it of this machine', async ({ open: connect, serve }) => {
  const hf = await connect({ jobs: [noop] })
  const config = { ...hf.config, httpPort: 0, httpOrigins: ['http://localhost:3000', 'https://app.example'] }
  const { url, call } = await serve(hf, { jobs: [noop], needsKey: false, config })
  const post = (origin: string) => call('/v1/queues/default/pause', { method: 'POST', headers: { origin } })
  const { port } = new URL(url)
  for (const origin of [
    'http://127.0.0.1:5173',
    'http://127.0.0.1',
    `https://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    'https://app.example',
    'null',
  ]) {
    const answer = await post(origin)
    expect([origin, answer.status, (await problem(answer)).code]).toEqual([origin, 403, 'host_refused'])
  }
  expect((await hf.queues()).filter(({ isPaused }) => isPaused)).toEqual([])
  for (const origin of [url, 'http://localhost:3000']) expect((await post(origin)).status).toBeLessThan(300)
})
