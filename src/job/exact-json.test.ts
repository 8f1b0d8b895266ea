import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InexactJson, parseExact, parseSteps } from './exact-json.ts'

function inSteps(text: string): unknown {
  const steps = parseSteps(Buffer.from(text), 'body')
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

const refused: [what: string, text: string, path: string][] = [
  ['an integer just beyond 2^53', '{"id":9007199254740993}', 'body.id'],
  ['a long integer in a list', '{"jobs":[{"input":1},{"input":[0,-12345678901234567890]}]}', 'body.jobs[1].input[1]'],
  ['an integer beyond all numbers', `[${'9'.repeat(400)}]`, 'body[0]'],
  ['__proto__', '{"a":{"__proto__":{"isAdmin":true}}}', 'body.a.__proto__'],
  ['__proto__ with an escape', '{"\\u005f_proto__":1}', 'body.__proto__'],
  ['__proto__ with another escape', '{"__p\\u0072oto__":1}', 'body.__proto__'],
]

test.for(refused)('%s is refused, and the answer says where it stands', ([, text, path]) => {
  for (const parse of [(given: string) => parseExact(given, 'body'), inSteps])
    expect(() => parse(text)).toThrow(expect.objectContaining({ found: { path, problem: expect.any(String) } }))
})

test('large integers that a number holds exactly, long decimals and digits in texts are kept', () => {
  const text = '[9007199254740992,10000000000000000,0.12345678901234567890,1e300,"12345678901234567890","__proto__"]'
  expect(parseExact(text, 'body')).toEqual(JSON.parse(text))
})

test('values nested too deep to be stored are refused', () => {
  expect(() => inSteps(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toThrow(InexactJson)
})

test('in steps, every text gives what JSON.parse gives', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.integer({ min: 0, max: 3 }), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(parsed(inSteps, text)).toEqual(parsed(JSON.parse, text))
    }),
  )
})

test('in steps, what JSON.parse refuses is refused', () => {
  const piece = fc.constantFrom(...'{}[],:"\\ \n\u0001-+.0123eEa', 'true', 'null', '"a"', '{"a":', '\\u00', '1.5')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      expect(parsed(inSteps, pieces.join(''))).toEqual(parsed(JSON.parse, pieces.join('')))
    }),
    { numRuns: 3_000 },
  )
})

function parsed(parse: (text: string) => unknown, text: string): unknown {
  try {
    return { value: parse(text) }
  } catch (error) {
    if (error instanceof SyntaxError) return 'malformed'
    if (error instanceof InexactJson) return { value: JSON.parse(text) } // well-formed, and refused for another reason
    throw error
  }
}
