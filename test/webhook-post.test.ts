import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { makeAddressPolicy } from '#holdfast/webhooks/address'
import type { RefusedNameError } from '#holdfast/webhooks/lookup'
import { makePoster, type PosterOptions } from '#holdfast/webhooks/post'
import { makeResolver, type Resolve } from '#holdfast/webhooks/resolver'
import { freshSecret } from '#holdfast/webhooks/secret'
import { sign } from '#holdfast/webhooks/sign'
import { nameServer, resolverAt } from './webhooks/name-server.ts'
import { certificate, closedPort, rawReceiver, receiver } from './webhooks/receiver.ts'

const headers = { 'content-type': 'application/json' }
const tenant = 'default'
const body = '{"type":"job.succeeded"}'
const leadsNowhere = 'The host name does not resolve to an address that webhooks may be sent to.'
const ample = 20_000
/** Enough if nothing can come anyway. */
const short = 300
/** Enough for an answer on a busy machine, and still to be waited for. */
const modest = 2_000

type Given = Partial<PosterOptions> & { allow?: string[]; resolve?: Resolve }

/** A poster that may reach this machine, unless told otherwise. */
function poster({ allow = ['127.0.0.1/32'], resolve, ...options }: Given = {}) {
  const system = makeResolver({ lookupMs: ample, mostPerTenant: 16, servers: ['127.0.0.1:9'] })
  const resolver = resolve ? { resolve, close() {} } : system
  const made = makePoster({ policy: makeAddressPolicy({ allow }), timeoutMs: ample, resolver, ...options })
  return {
    ...made,
    to: (url: string, signal?: AbortSignal) => made.post({ tenant, url, headers, body, atMs: Date.now() }, signal),
    [Symbol.asyncDispose]: () => made.close(),
  }
}

describe('what an answer means', () => {
  test('a receiver gets the exact bytes, and verifies their signature', async () => {
    const secret = freshSecret()
    const text = JSON.stringify({ name: 'Zoë ☕', broken: '\ud800' })
    const timestamp = Math.floor(Date.now() / 1_000)
    await using server = await receiver((response) => response.end('thanks'))
    await using one = poster()
    const result = await one.post({
      tenant,
      url: `${server.url}/hooks?a=b`,
      headers: {
        ...headers,
        'webhook-id': 'evt_1',
        'webhook-timestamp': `${timestamp}`,
        'webhook-signature': sign({ id: 'evt_1', timestamp, body: text, secrets: [secret] }),
      },
      body: text,
      atMs: Date.now(),
    })
    expect(result).toEqual({ kind: 'delivered', status: 200, ms: expect.any(Number) })
    const [got] = server.received
    expect(got).toMatchObject({ method: 'POST', path: '/hooks?a=b', body: text, headers })
    new Webhook(secret).verify(got?.body ?? '', got?.headers as Record<string, string>)
  })

  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [304, 'permanent'],
    [400, 'permanent'],
    [401, 'permanent'],
    [404, 'permanent'],
    [410, 'permanent'],
    [408, 'retry'],
    [425, 'retry'],
    [429, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
    [599, 'retry'],
  ])('%i is %s', async (status, kind) => {
    await using server = await receiver((response) => response.writeHead(status).end())
    await using one = poster()
    expect(await one.to(server.url)).toMatchObject({ kind, status })
  })

  test('a retry waits as long as the receiver asks, and keeps the beginning of what it said', async () => {
    await using server = await receiver((response) =>
      response.writeHead(429, { 'retry-after': '7' }).end(`Slow\0 down!\n${'x'.repeat(1_000)}`),
    )
    await using one = poster()
    const result = await one.to(server.url)
    expect(result).toMatchObject({ kind: 'retry', reason: 'The receiver answered 429.', retryAfterMs: 7_000 })
    expect(result).toHaveProperty('excerpt', `Slow down! ${'x'.repeat(489)}`)
  })

  test('a Retry-After may be a date, and one that makes no sense is ignored', async () => {
    const replies = [new Date(Date.now() + 3_600_000).toUTCString(), 'Fri, 31 Dec 9999 23:59:59 GMT', 'soon']
    await using server = await receiver((response) =>
      response.writeHead(503, { 'retry-after': replies.shift() ?? '' }).end(),
    )
    await using one = poster()
    const dated = (await one.to(server.url)) as { retryAfterMs: number }
    expect(dated.retryAfterMs).toBeGreaterThan(3_500_000)
    expect(dated.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    expect(await one.to(server.url)).toMatchObject({ kind: 'retry', retryAfterMs: 86_400_000 })
    expect(await one.to(server.url)).not.toHaveProperty('retryAfterMs')
  })

  test.each([301, 302, 303, 307, 308])('a %i is not followed, and names its target without secrets', async (status) => {
    await using target = await receiver((response) => response.end())
    const location = `${target.url}/next?token=hunter2`
    await using server = await receiver((response) => response.writeHead(status, { location }).end())
    await using one = poster()
    const reason = `Redirects are not followed; it points to ${target.url}/next.`
    expect(await one.to(server.url)).toEqual({ kind: 'permanent', status, reason, ms: expect.any(Number) })
    expect(target.connections()).toBe(0)
  })
})

describe('a connection that fails is worth a retry', () => {
  test('when it is refused', async () => {
    await using one = poster()
    const result = await one.to(`http://127.0.0.1:${await closedPort()}`)
    expect(result).toEqual({ kind: 'retry', reason: 'The connection was refused.', ms: expect.any(Number) })
  })

  test('when the name is unknown', async () => {
    await using names = await nameServer({})
    await using one = poster({ resolver: resolverAt(names) })
    expect(await one.to('https://nothing.invalid/')).toMatchObject({ kind: 'retry', reason: leadsNowhere })
  })

  test('when the name has no address', async () => {
    await using one = poster({ resolve: async () => [] })
    expect(await one.to('https://hooks.test/')).toMatchObject({ kind: 'retry', reason: leadsNowhere })
  })

  test('when the look-up does not end', async () => {
    await using one = poster({ timeoutMs: short, resolve: () => new Promise(() => {}) })
    expect(await one.to('https://hooks.test/')).toMatchObject({
      kind: 'retry',
      reason: 'The receiver did not respond within 300 ms.',
    })
  })

  test('when the look-up ends too late, and then nothing is sent', async () => {
    let answer = (_: string[]) => {}
    const resolve = () => new Promise<string[]>((found) => (answer = found))
    await using server = await receiver((response) => response.end())
    await using one = poster({ allow: ['127.0.0.1', 'hooks.test'], timeoutMs: modest, resolve })
    expect(await one.to(`http://hooks.test:${server.port}/late`)).toMatchObject({ kind: 'retry' })
    answer(['127.0.0.1'])
    expect(await one.to(`${server.url}/next`)).toMatchObject({ kind: 'delivered' })
    expect(server.received.map(({ path }) => path)).toEqual(['/next'])
  })

  test('when the receiver hangs up before it has answered', async () => {
    await using silent = await rawReceiver((socket) => socket.destroy())
    await using halfway = await rawReceiver((socket) => socket.end('HTTP/1.1 200'))
    await using one = poster()
    for (const { url } of [silent, halfway])
      expect(await one.to(url)).toMatchObject({
        kind: 'retry',
        reason: 'The connection was closed before a response arrived.',
      })
  })

  test('when the receiver never answers', async () => {
    await using server = await receiver(() => {})
    await using one = poster({ timeoutMs: short })
    expect(await one.to(server.url)).toMatchObject({
      kind: 'retry',
      reason: 'The receiver did not respond within 300 ms.',
    })
    await server.isLeft()
  })

  test('when the receiver drips its headers', async () => {
    await using server = await rawReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const drip = setInterval(() => socket.write('x: y\r\n'), 20)
      socket.once('close', () => clearInterval(drip))
    })
    await using one = poster({ timeoutMs: short })
    expect(await one.to(server.url)).toMatchObject({
      kind: 'retry',
      reason: 'The receiver did not respond within 300 ms.',
    })
    await server.isLeft()
  })

  test('when the headers of the answer are huge', async () => {
    await using server = await receiver((response) => response.writeHead(200, { 'x-huge': 'x'.repeat(20_000) }).end())
    await using one = poster()
    const reason = 'The headers of the response are too large.'
    expect(await one.to(server.url)).toMatchObject({ kind: 'retry', reason })
  })

  test('when the answer is not HTTP', async () => {
    await using server = await rawReceiver((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'))
    await using one = poster()
    expect(await one.to(server.url)).toMatchObject({ kind: 'retry', reason: 'The response is not valid HTTP.' })
  })

  test('when the receiver does not speak TLS', async () => {
    await using server = await receiver((response) => response.end())
    await using one = poster()
    const result = await one.to(server.url.replace('http:', 'https:'))
    expect(result).toMatchObject({
      kind: 'retry',
      reason: expect.stringMatching(/^The TLS handshake failed/),
    })
  })

  test('when nobody vouches for the certificate, or it is for another name', async () => {
    await using server = await receiver((response) => response.end(), 'https')
    await using strict = poster()
    await using trusting = poster({ ca: [certificate], resolve: async () => ['127.0.0.1'] })
    const reason = expect.stringMatching(/^The TLS certificate is not valid: .+\.$/)
    expect(await strict.to(server.url)).toMatchObject({ kind: 'retry', reason })
    expect(await trusting.to(`https://other.test:${server.port}`)).toMatchObject({ kind: 'retry', reason })
    expect(server.received).toEqual([])
    expect(await trusting.to(`https://hooks.test:${server.port}`)).toMatchObject({ kind: 'delivered' })
  })
})

describe('the status decides, whatever becomes of the body', () => {
  test('an endless answer is cut', async () => {
    await using server = await receiver((response) => {
      const pour = () => {
        while (response.write('x'.repeat(10_000)));
      }
      response.on('drain', pour)
      pour()
    })
    await using one = poster({ maxResponseBytes: 50_000 })
    expect(await one.to(server.url)).toMatchObject({ kind: 'delivered' })
    await server.isLeft()
  })

  test.each([
    [200, 'delivered'],
    [500, 'retry'],
  ])('an answer that drips ends with the time, and its %i is %s', async (status, kind) => {
    await using server = await receiver((response) => {
      response.writeHead(status).write('drip')
      const drip = setInterval(() => response.write('.'), 20)
      response.once('close', () => clearInterval(drip))
    })
    await using one = poster({ timeoutMs: modest })
    const result = await one.to(server.url)
    expect(result).toMatchObject({ kind, status })
    expect(result.ms).toBeGreaterThanOrEqual(modest - 5)
    if (result.kind !== 'delivered') expect(result.excerpt).toMatch(/^drip/)
    await server.isLeft()
  })

  test('an answer that breaks off counts', async () => {
    await using good = await rawReceiver((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nabc'))
    await using bad = await rawReceiver((socket) => socket.end('HTTP/1.1 500 No\r\ncontent-length: 99\r\n\r\nabc'))
    await using one = poster()
    expect(await one.to(good.url)).toMatchObject({ kind: 'delivered', status: 200 })
    expect(await one.to(bad.url)).toMatchObject({ kind: 'retry', status: 500, excerpt: 'abc' })
  })
})

describe('a post goes only where the policy lets it', () => {
  const forms = ['127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '[::ffff:127.0.0.1]', 'localhost']

  test.each(forms)('%s is this machine, and refused for good', async (host) => {
    await using server = await receiver((response) => response.end())
    await using one = poster({ allow: [] })
    for (const scheme of ['http', 'https']) {
      const result = await one.to(`${scheme}://${host}:${server.port}/`)
      expect(result).toMatchObject({ kind: 'permanent', reason: expect.stringContaining('loopback') })
    }
    expect(server.connections()).toBe(0)
  })

  test.each(forms)('%s is this machine, and reached if it is on the allow-list', async (host) => {
    await using server = await receiver((response) => response.end())
    await using one = poster()
    expect(await one.to(`http://${host}:${server.port}/`)).toMatchObject({ kind: 'delivered' })
  })

  test('a name that leads to this machine is refused, but may lead elsewhere the next time', async () => {
    await using server = await receiver((response) => response.end(), 'https')
    const refused: string[][] = []
    const onRefused = ({ host, sorts }: RefusedNameError) => refused.push([host, ...sorts])
    const resolve = async () => ['127.0.0.1', '::1', '10.0.0.1']
    await using one = poster({ allow: [], ca: [certificate], resolve, onRefused })
    const result = await one.to(`https://hooks.test:${server.port}`)
    expect(result).toMatchObject({ kind: 'retry', reason: leadsNowhere })
    expect(refused).toEqual([['hooks.test', 'loopback', 'private']])
    expect(server.connections()).toBe(0)
  })

  test('of many addresses only those that pass are tried', async () => {
    await using server = await receiver((response) => response.end(), 'https')
    const resolve = async () => ['10.0.0.1', 'fd00::1', '169.254.169.254', 'nonsense', '127.0.0.1']
    await using one = poster({ ca: [certificate], resolve })
    expect(await one.to(`https://hooks.test:${server.port}`)).toMatchObject({ kind: 'delivered' })
  })

  test('a name on the allow-list is reached over plain http, wherever it leads', async () => {
    await using server = await receiver((response) => response.end())
    await using one = poster({ allow: ['hooks.test'], resolve: async () => ['127.0.0.1'] })
    expect(await one.to(`http://hooks.test:${server.port}`)).toMatchObject({ kind: 'delivered' })
    expect(await one.to(`http://other.test:${server.port}`)).toMatchObject({ kind: 'permanent' })
  })

  test('a name that changes its answer after the check gains nothing', async () => {
    await using server = await receiver((response) => response.end(), 'https')
    let asked = 0
    // the first answer is public, and belongs to nobody
    const resolve = async () => (asked++ === 0 ? ['2000::1'] : ['127.0.0.1'])
    await using one = poster({ allow: [], ca: [certificate], timeoutMs: modest, resolve })
    const url = `https://hooks.test:${server.port}`
    expect(await one.to(url)).toMatchObject({ kind: 'retry' })
    expect(asked).toBe(1)
    expect(await one.to(url)).toMatchObject({ kind: 'retry', reason: leadsNowhere })
    expect(server.connections()).toBe(0)
  })

  test('a URL that is none is refused for good', async () => {
    await using one = poster()
    for (const url of ['', 'hooks', 'ftp://127.0.0.1/', 'http://a:b@127.0.0.1/'])
      expect(await one.to(url)).toMatchObject({ kind: 'permanent' })
  })

  test('a header that HTTP does not allow is refused for good', async () => {
    await using server = await receiver((response) => response.end())
    await using one = poster()
    const result = await one.post({ tenant, url: server.url, headers: { 'x-a': 'b\r\nc: d' }, body, atMs: Date.now() })
    expect(result).toMatchObject({ kind: 'permanent' })
    expect(server.received).toEqual([])
  })
})

describe('a poster has a life', () => {
  test('it keeps its connection for the next post, and leaves none behind', async () => {
    await using server = await receiver((response) => response.end())
    const one = poster()
    for (let count = 0; count < 20; count++) expect(await one.to(server.url)).toMatchObject({ kind: 'delivered' })
    expect(server.connections()).toBeLessThan(5)
    await Promise.all([one.close(), one.close()])
    await server.isLeft()
    await expect(one.to(server.url)).rejects.toMatchObject({ code: 'not_running' })
  })

  test('it finishes what is under way before it closes', async () => {
    const one = poster()
    let closing: Promise<void> | undefined
    await using server = await receiver((response) => {
      closing = one.close()
      response.end()
    })
    expect(await one.to(server.url)).toMatchObject({ kind: 'delivered' })
    await closing
    await server.isLeft()
  })

  test('a post that is stopped rejects with the reason of its signal, and lets go of the connection', async () => {
    const stop = new AbortController()
    await using server = await receiver(() => stop.abort(new Error('drained')))
    await using one = poster()
    await expect(one.to(server.url, stop.signal)).rejects.toThrow('drained')
    await expect(one.to(server.url, stop.signal)).rejects.toThrow('drained')
    await server.isLeft()
  })
})
