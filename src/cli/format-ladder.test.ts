import { expect, test } from 'vitest'
import { readConfig } from '../config/config.ts'
import { ladder } from '../reaper/recovery-bound.ts'
import { ladderFacts, ladderLines } from './format-ladder.ts'

test('the ladder has a line for each rung, fastest first, and only a hung handler counts from its timeout', () => {
  const config = readConfig({}, {})
  const lines = ladderLines(config)
  expect(lines.pop()).toContain('for up to 1,000 jobs')
  expect(lines.map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
    ['child exited', '1.5 s'],
    ['lock gone', '4.8 s'],
    ['lease ran out', '17 s'],
    ['deadline passed', 'timeout + 14 s'],
  ])
})

test('every setting that a rung is made of is told with it', () => {
  const config = readConfig({}, {})
  const { settings } = ladderFacts(config)
  for (const { made } of ladder(config))
    for (const name of made.match(/\w+Ms/g) ?? []) expect(settings).toHaveProperty(name)
})
