import { describe, expect, test } from 'vitest'
import { makeMessageReader, makeStatementFinder, nameIn } from '#holdfast/prove/protocol'

const message = (type: string, body: Buffer | string) => {
  const bytes = Buffer.from(body)
  const header = Buffer.alloc(5)
  header.write(type)
  header.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([header, bytes])
}
const untyped = (code: number, body = '') => {
  const header = Buffer.alloc(8)
  header.writeInt32BE(8 + body.length)
  header.writeInt32BE(code, 4)
  return Buffer.concat([header, Buffer.from(body)])
}
const startup = untyped(196_608, 'user\0me\0\0')
const tlsRequest = untyped(80_877_103)
const types = (messages: { type: string }[]) => messages.map(({ type }) => type).join('')

describe('the reader', () => {
  test('tells several messages of one chunk apart', () => {
    const read = makeMessageReader('server')
    expect(types(read(Buffer.concat([message('1', ''), message('2', ''), message('Z', 'I')])))).toBe('12Z')
  })

  test('joins a message that comes byte by byte', () => {
    const read = makeMessageReader('server')
    const whole = message('C', 'INSERT 0 1\0')
    const pieces = [...whole].map((byte) => read(Buffer.from([byte])))
    expect(pieces.slice(0, -1).every((found) => found.length === 0)).toBe(true)
    expect(pieces.at(-1)?.[0]?.raw).toEqual(whole)
  })

  test('gives out the end of one message and the beginning of the next in the right order', () => {
    const read = makeMessageReader('server')
    const both = Buffer.concat([message('T', 'abcdef'), message('D', 'ghi')])
    expect(read(both.subarray(0, 3))).toEqual([])
    expect(types(read(both.subarray(3, 14)))).toBe('T')
    expect(types(read(both.subarray(14)))).toBe('D')
  })

  test('takes a message of many megabytes in small chunks within a moment', () => {
    const read = makeMessageReader('client')
    read(startup)
    const huge = message('B', Buffer.alloc(32 * 1024 * 1024, 7))
    const startedMs = performance.now()
    let found: { raw: Buffer }[] = []
    for (let at = 0; at < huge.length; at += 65_536) found = read(huge.subarray(at, at + 65_536))
    expect(found[0]?.raw.length).toBe(huge.length)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })

  test('knows that a client begins without types, and may first ask for encryption', () => {
    const read = makeMessageReader('client')
    expect(types(read(tlsRequest))).toBe('')
    const [first, second] = read(Buffer.concat([startup, message('Q', 'select 1\0')]))
    expect(first?.raw).toEqual(startup)
    expect(second?.type).toBe('Q')
  })
})

describe('the name of a statement', () => {
  const parse = (name: string, text: string) => ({ type: 'P', raw: message('P', `${name}\0${text}\0\0\0`) })
  const bind = (name: string) => ({ type: 'B', raw: message('B', `portal\0${name}\0`) })

  test('is what its Parse said, at every later Bind', () => {
    const find = makeStatementFinder()
    expect(find(parse('job.claim', '/* job.claim */ update'))?.name).toBe('job.claim')
    expect(find(parse('', '/* session.beat */ update'))?.name).toBe('session.beat')
    expect(find(bind('job.claim'))?.name).toBe('job.claim')
    expect(find(bind(''))?.name).toBe('session.beat')
  })

  test('is its leading comment, or else its first words', () => {
    expect(nameIn('/* bus.probe */ select')).toBe('bus.probe')
    expect(nameIn('begin')).toBe('begin')
    expect(nameIn('LISTEN holdfast_wake')).toBe('listen holdfast_wake')
    expect(nameIn('-- what it is for\ncreate table holdfast.job ()')).toBe('create table')
  })

  test('comes with whether it is about waking', () => {
    const find = makeStatementFinder()
    const sent = (text: string) => find({ type: 'Q', raw: message('Q', `${text}\0`) })
    expect(sent('listen holdfast_wake')).toMatchObject({ isListen: true, isAboutWaking: true })
    expect(sent("/* job.submit */ select pg_notify('a', '')")).toMatchObject({ isListen: false, isAboutWaking: true })
    expect(sent('/* job.claim */ update')).toMatchObject({ isAboutWaking: false })
  })
})
