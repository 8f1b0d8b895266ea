import { expect, test } from 'vitest'
import { restartDelayMs } from './supervisor.ts'

test('a process that keeps crashing is started ever later, up to ten seconds', () => {
  expect([1, 2, 3, 6, 7, 50].map(restartDelayMs)).toEqual([200, 400, 800, 6_400, 10_000, 10_000])
})
