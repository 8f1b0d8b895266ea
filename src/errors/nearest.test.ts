import { expect, test } from 'vitest'
import { distance, nearest } from './nearest.ts'
import { restartDelayMs } from './supervisor.ts'

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

test('a process that keeps crashing is started ever later, up to ten seconds', () => {
  expect([1, 2, 3, 6, 7, 50].map(restartDelayMs)).toEqual([200, 400, 800, 6_400, 10_000, 10_000])
})
