import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonical } from './canonical.ts'

test('equal values have the same text, in whatever order their keys were written', () => {
  expect(canonical({ b: [1, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}')
  expect(canonical({ a: true, b: [1, { c: 'x', d: null }] })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}')
  expect(['x', 1, null].map(canonical)).toEqual(['"x"', '1', 'null'])
})

test('the text is JSON of the same value, however long it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const plain = JSON.parse(JSON.stringify(value))
      expect(JSON.parse(canonical(plain))).toEqual(plain)
    }),
    { numRuns: 50 },
  )
  const long = Array.from({ length: 5_000 }, (_, index) => ({ b: index, a: 'x' }))
  expect(JSON.parse(canonical(long))).toEqual(long)
})
