import { expect, test } from 'vitest'
import { excerptOf, resultOf, retryAfterOf } from './answer.ts'

const url = new URL('https://example.com/hooks?token=hunter2')
const now = Date.UTC(2031, 0, 6, 12, 0, 0)
const answered = (status: number, headers: Record<string, string> = {}, body = '') =>
  resultOf({ url, status, headers, body: Buffer.from(body), ms: 7, atMs: now })

test('every 2xx is delivered', () => {
  for (const status of [200, 201, 202, 204, 299]) expect(answered(status)).toEqual({ kind: 'delivered', status, ms: 7 })
})

test('what may be gone later is worth a retry', () => {
  for (const status of [408, 425, 429, 500, 502, 503, 504, 599])
    expect(answered(status, {}, 'busy')).toEqual({
      kind: 'retry',
      reason: `The receiver answered ${status}.`,
      status,
      excerpt: 'busy',
      ms: 7,
    })
})

test('every other answer is permanent', () => {
  for (const status of [400, 401, 403, 404, 410, 413, 422, 451])
    expect(answered(status)).toEqual({ kind: 'permanent', reason: `The receiver answered ${status}.`, status, ms: 7 })
})

test.each([
  ['https://other.example/a?token=hunter2#x', 'it points to https://other.example/a.'],
  ['/elsewhere?token=hunter2', 'it points to https://example.com/elsewhere.'],
  ['//user:hunter2@other.example/', 'it points to https://other.example/.'],
  ['file:///etc/passwd', 'it points to a file: address.'],
  ['http://[', 'Redirects are not followed.'],
])('a redirect is permanent, and named without its secrets: %s', (location, end) => {
  const result = answered(302, { location })
  expect(result).toMatchObject({ kind: 'permanent', status: 302, reason: expect.stringContaining(end) })
  expect(JSON.stringify(result)).not.toContain('hunter2')
})

test('a redirect to nowhere is permanent, too', () => {
  for (const status of [300, 301, 304, 307, 308])
    expect(answered(status)).toMatchObject({ kind: 'permanent', reason: 'Redirects are not followed.' })
})

test.each([
  ['0', 0],
  ['120', 120_000],
  [' 5 ', 5_000],
  ['86401', 86_400_000],
  ['9'.repeat(400), 86_400_000],
  ['Mon, 06 Jan 2031 12:01:00 GMT', 60_000],
  ['Monday, 06-Jan-31 12:01:00 GMT', 60_000],
  ['Mon, 06 Jan 2031 11:00:00 GMT', 0],
  ['Sun, 06 Jan 2041 12:00:00 GMT', 86_400_000],
])('a Retry-After of %j is honoured, up to a day', (header, wait) => {
  expect(retryAfterOf(header, now)).toBe(wait)
})

test.each(['', '-1', '1.5', '1e3', '0x10', 'soon', 'call me in 2030', '2031-01-06', 'Mon, 99 Foo 2031 12:01:00 GMT'])(
  'a Retry-After of %j is ignored',
  (header) => {
    expect(retryAfterOf(header, now)).toBeUndefined()
  },
)

test('a Retry-After counts for retries only', () => {
  expect(answered(503, { 'retry-after': '3' })).toMatchObject({ kind: 'retry', retryAfterMs: 3_000 })
  expect(answered(503, { 'retry-after': 'soon' })).not.toHaveProperty('retryAfterMs')
  expect(answered(404, { 'retry-after': '3' })).not.toHaveProperty('retryAfterMs')
})

test('an excerpt has 500 printable characters at most', () => {
  expect(excerptOf(Buffer.from('a'.repeat(600)))).toHaveLength(500)
  expect([...(excerptOf(Buffer.from('😀'.repeat(600))) ?? '')]).toHaveLength(500)
  expect(excerptOf(Buffer.from('  one\0\x1b[31m\r\n\ttwo\u202e\u200b '))).toBe('one [31m two')
  expect(excerptOf(Buffer.from([0x61, 0xff, 0xfe, 0x62]))).toBe('a b')
  for (const empty of ['', ' \n', '\0\0']) expect(excerptOf(Buffer.from(empty))).toBeUndefined()
})
