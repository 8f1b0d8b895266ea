/** Bodies that are no JSON, or none that anybody asked for. */
export const oddBodies = [
  '',
  ' ',
  '{',
  '{"a":}',
  '\ufeff{}',
  '{}{}',
  'null',
  '[]',
  '"text"',
  '{"a":NaN}',
  `{"jobs":[${'{},'.repeat(6_000)}{}]}`,
  `"${'x'.repeat(1_200_000)}"`,
]
  .map((text) => Buffer.from(text))
  .concat([Buffer.from([0x22, 0xff, 0xfe, 0x22]), Buffer.from('{"kind":"\0"}'), Buffer.from([0xed, 0xa0, 0x80])])

/** Methods, of which most are wrong anywhere. */
export const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'get',
  'JUNK',
  'M-SEARCH',
]

/** What may stand behind a path. */
export const suffixes = [
  '/',
  '//',
  '/..',
  '/%2e%2e/',
  '/%',
  '/%zz',
  '/%00',
  '/%ff%fe',
  '/%c0%af',
  '%0d%0aX-Odd: 1',
  '/\\',
  ';a=b',
  '/é🦆',
  '#part',
  `/${'long/'.repeat(1_000)}`,
  '/x'.repeat(9_000),
]

/** What may stand behind a query. */
export const moreQuery = [
  'unknown=1',
  '__proto__=1',
  '__proto__[x]=1',
  'constructor=1',
  '%',
  '%zz=%zz',
  '=',
  '&&&',
  'limit=1&limit=2',
  'limit=-0',
  'limit=1e3',
  'limit=%00',
  'cursor=AAAA',
  `cursor=${'A'.repeat(1_000)}`,
  'tenant=theirs',
  'tenant=%ED%A0%80',
  'é=🦆',
  `long=${'x'.repeat(20_000)}`,
]

/** Content types, of which few are JSON. */
export const contentTypes = [
  null,
  '',
  'text/plain',
  'application/json; charset=utf-16',
  'APPLICATION/JSON',
  'application/vnd.api+json',
  'application/jsonx',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'é/🦆',
  `application/json;${' '.repeat(5_000)}x`,
]

/** Headers that are malformed, mean nothing here, or mean trouble. */
export const oddHeaders: (readonly [string, string])[] = [
  ['prefer', 'wait=1e9'],
  ['prefer', 'wait=-1, wait=0'],
  ['prefer', 'x'.repeat(300)],
  ['idempotency-key', ''],
  ['idempotency-key', '\ud800é🦆'],
  ['idempotency-key', 'k'.repeat(300)],
  ['last-event-id', '1'],
  ['last-event-id', 'AAAA'],
  ['last-event-id', '-1'],
  ['traceparent', '00-zz'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['if-none-match', '"'.repeat(2_000)],
  ['x-request-id', '<script>'],
  ['x-request-id', 'mine.1'],
  ['x-correlation-id', '\0'],
  ['host', 'evil.example'],
  ['host', 'é🦆'],
  ['host', 'a b'],
  ['origin', 'https://evil.example'],
  ['expect', '100-continue'],
  ['expect', 'something else'],
  ['content-encoding', 'gzip'],
  ['content-length', '3'],
  ['content-length', '-1'],
  ['transfer-encoding', 'gzip, chunked'],
  ['accept', 'text/html'],
  ['upgrade', 'websocket'],
  ['cookie', 'a=b'],
  ['__proto__', 'x'],
  ['x-forwarded-for', '127.0.0.1'],
  ['x-http-method-override', 'DELETE'],
  ['bad header', 'x'],
  ['', 'x'],
  ['x-long', 'x'.repeat(20_000)],
]

/** Ways to say who one is that are not the key as it should be sent. */
export function authsBeside(key: string): (readonly (readonly [string, string])[])[] {
  const of = (text: string) => [['authorization', text] as const]
  return [
    [],
    of(''),
    of('Bearer'),
    of('Bearer '),
    of(`bearer   ${key} `),
    of(`Basic ${Buffer.from(key).toString('base64')}`),
    of(`Bearer ${key}x`),
    of(`Bearer ${key.slice(0, -1)}`),
    of(`Bearer ${key.slice(0, -2)}__`),
    of('Bearer hf_é🦆'),
    of(`Bearer hf_${'0'.repeat(32)}_${'A'.repeat(43)}`),
    of(`Bearer ${'x'.repeat(9_000)}`),
    [...of(`Bearer ${key}`), ...of('Bearer other')],
  ]
}
