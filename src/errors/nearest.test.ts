import { expect, test } from 'vitest'
import { distance, nearest } from './nearest.ts'

test('a mistyped word finds the one that was meant', () => {
  const known = ['extract', 'report', 'mail']
  expect(['extrct', 'Extract', 'reprot', 'mial', 'invoice'].map((word) => nearest(word, known))).toEqual([
    'extract',
    'extract',
    'report',
    'mail',
    undefined,
  ])
  expect([distance('', 'abc'), distance('abc', 'abc'), distance('ab', 'ba')]).toEqual([3, 0, 1])
})
