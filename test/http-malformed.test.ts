import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { bareServer } from './http/bare.ts'

/** Sends bytes and reads until the server hangs up. */
async function say(port: number, bytes: string): Promise<string> {
  const socket = createConnection({ port, host: '127.0.0.1' })
  socket.write(bytes)
  return text(socket)
}

test.for([
  ['what is no HTTP', 'hello?\r\n\r\n', 400, 'header_invalid'],
  ['a header with a NUL', 'GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n', 400, 'header_invalid'],
  ['a method that nobody knows', 'JUNK / HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'header_invalid'],
  [
    'two lengths',
    'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
    'header_invalid',
  ],
  ['a host that is none', 'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400, 'header_invalid'],
  ['a path that is none', 'GET //\\ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, 'header_invalid'],
  ['a request without a host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'header_invalid'],
  ['a request for a proxy', 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n', 405, 'method_not_allowed'],
  ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
] as const)('%s is refused with a problem', async ([, bytes, status, code]) => {
  const answer = await say((await bareServer()).port, bytes)
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .+\r\n`))
  expect(answer).toContain('content-type: application/problem+json')
  expect(answer).toContain('x-content-type-options: nosniff')
  const problem = JSON.parse(answer.split('\r\n\r\n')[1] as string)
  expect(problem).toMatchObject({ status, code, type: `urn:holdfast:error:${code}` })
  expect(answer).toContain(`x-request-id: ${problem.requestId}`)
})

test('a client that sends its headers drop by drop is told that it was too slow', async () => {
  const answer = await say((await bareServer({ httpHeaderMs: 100 })).port, 'GET / HTTP/1.1\r\nHost: x\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(answer).toContain('"code":"request_slow"')
})

test('an expectation that nobody knows is passed over', async () => {
  const answer = await say(
    (await bareServer()).port,
    'GET / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nConnection: close\r\n\r\n',
  )
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
})

test('a client of HTTP/1.0 needs no Host header', async () => {
  expect(await say((await bareServer()).port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})
