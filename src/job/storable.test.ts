import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeStorable } from './storable.ts'

const cycle: Record<string, unknown> = {}
cycle.inner = { back: [cycle] }

const refused: [what: string, value: unknown, path: string, problem: RegExp][] = [
  ['undefined', undefined, 'input', /undefined/],
  ['NaN', { a: Number.NaN }, 'input.a', /NaN/],
  ['infinity', [Number.POSITIVE_INFINITY], 'input[0]', /Infinity/],
  ['a BigInt', { a: 1n }, 'input.a', /bigint/],
  ['a function', { a: () => 1 }, 'input.a', /function/],
  ['a symbol', { a: Symbol('x') }, 'input.a', /symbol/],
  ['a cycle', cycle, 'input.inner.back[0]', /cycle/],
  ['a NUL in a text', { a: 'x\0y' }, 'input.a', /NUL/],
  ['a NUL in a key', { 'x\0y': 1 }, 'input, key "x\\u0000y"', /NUL/],
  ['a lone surrogate', ['\ud800'], 'input[0]', /surrogate/],
  ['a lone surrogate in a key', { '\udfff': 1 }, 'input, key "\\udfff"', /surrogate/],
  ['a field called __proto__', JSON.parse('{"a":{"__proto__":1}}'), 'input.a, key "__proto__"', /prototype/],
  ['a Map', { a: new Map() }, 'input.a', /Map/],
  ['a Set', new Set([1]), 'input', /Set/],
  ['an instance of a class', { a: new (class Point {})() }, 'input.a', /Point/],
  ['an invalid Date', { a: new Date(Number.NaN) }, 'input.a', /invalid Date/],
  ['a toJSON that answers nothing', { toJSON: () => undefined }, 'input', /undefined/],
]

test.for(refused)('%s cannot be stored, and the answer says where it stands', ([, value, path, problem]) => {
  expect(encodeStorable(value, 'input')).toEqual({ path, problem: expect.stringMatching(problem) })
})

test('a value nested too deep is refused instead of overflowing the stack', () => {
  let deep: unknown = 1
  for (let n = 0; n < 100_000; n++) deep = [deep]
  expect(encodeStorable(deep, 'input')).toMatchObject({ problem: expect.stringContaining('nested deeper') })
})

test('the same object twice side by side is no cycle', () => {
  const shared = { a: 1 }
  expect(encodeStorable([shared, shared], 'input')).toEqual({ json: '[{"a":1},{"a":1}]' })
})

test('a Date and a whole pair of surrogates can be stored', () => {
  expect(encodeStorable({ at: new Date(0), face: '😀' }, 'input')).toEqual({
    json: '{"at":"1970-01-01T00:00:00.000Z","face":"😀"}',
  })
})

test('undefined goes as in JSON: a field is left out, an element of a list is null', () => {
  const value = {
    u: undefined,
    inner: { u: undefined, a: 1 },
    list: [1, undefined],
    hole: Array(1),
    gone: { toJSON() {} },
  }
  expect(encodeStorable(value, 'input')).toEqual({ json: '{"inner":{"a":1},"list":[1,null],"hole":[null]}' })
})

test('whatever JSON can hold comes back as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const encoded = encodeStorable(value, 'input')
      if ('json' in encoded) expect(JSON.parse(encoded.json)).toEqual(JSON.parse(JSON.stringify(value)))
      else expect(encoded.problem).toMatch(/NUL|surrogate|prototype/)
    }),
  )
})

test('nothing makes it throw', () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withSparseArray: true }),
      (value) => {
        const encoded = encodeStorable(value, 'input')
        if ('json' in encoded) expect(() => JSON.parse(encoded.json)).not.toThrow()
      },
    ),
  )
})
