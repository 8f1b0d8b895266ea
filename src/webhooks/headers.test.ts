import { expect, test } from 'vitest'
import { checkHeaders } from './headers.ts'

const invalid = expect.objectContaining({ code: 'webhook_header_invalid' })

test('headers of your own pass, with names in small letters', () => {
  expect(checkHeaders({ Authorization: 'Bearer a.b-c', 'X-Team': '', 'x-a': 'one\ttwo' })).toEqual({
    authorization: 'Bearer a.b-c',
    'x-team': '',
    'x-a': 'one\ttwo',
  })
  expect(checkHeaders({})).toEqual({})
})

test.each([
  'webhook-id',
  'Webhook-Timestamp',
  'WEBHOOK-SIGNATURE',
  'webhook-anything',
  'Content-Type',
  'content-length',
  'Host',
  'User-Agent',
  'Connection',
  'Transfer-Encoding',
  'traceparent',
  'TraceState',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Upgrade',
  'Expect',
  'Cookie',
  'Set-Cookie',
  'X-Forwarded-For',
  'Forwarded',
])('%s is not yours to set', (name) => {
  expect(() => checkHeaders({ [name]: 'a' })).toThrow(invalid)
})

test.each(['', ' ', 'a b', 'a:b', 'a\nb', 'ä', 'a'.repeat(201), 'x\0', 'host ', ' host', '\u212a'])(
  'what is no name of a header is refused: %j',
  (name) => {
    expect(() => checkHeaders({ [name]: 'a' })).toThrow(invalid)
  },
)

test.each([['a\r\nhost: evil'], ['a\n'], ['\0'], ['ä'], [' a'], ['a '], [1], [null], [['a']], [undefined]])(
  'what is no value of a header is refused: %j',
  (value) => {
    expect(() => checkHeaders({ 'x-a': value })).toThrow(invalid)
  },
)

test('no message repeats a value, which may be a credential', () => {
  expect(() => checkHeaders({ 'x-a': 'hunter2\n' })).toThrow(/^(?!.*hunter2)/s)
})

test('there are at most 20 headers, of 4 KB together', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'a']))
  expect(Object.keys(checkHeaders(many(20)))).toHaveLength(20)
  expect(() => checkHeaders(many(21))).toThrow(invalid)
  expect(checkHeaders({ 'x-a': 'a'.repeat(4_093) })).toBeDefined()
  expect(() => checkHeaders({ 'x-a': 'a'.repeat(4_094) })).toThrow(invalid)
})

test('one header in two letter cases is refused, for nobody knows which one counts', () => {
  expect(() => checkHeaders({ 'X-A': '1', 'x-a': '2' })).toThrow(invalid)
})

test.each([[null], [undefined], ['a: b'], [[['a', 'b']]], [1]])('headers must be an object: %j', (headers) => {
  expect(() => checkHeaders(headers)).toThrow(invalid)
})
