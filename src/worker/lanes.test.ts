import { expect, test } from 'vitest'
import { readConfig } from '../config/config.ts'
import { defineJob } from '../job/define.ts'
import { deadlinesOf, lanesOf, rotated } from './lanes.ts'

const run = () => {}
const quick = defineJob('quick', { run, timeoutMs: 100 })
const slow = defineJob('slow', {
  queue: 'night',
  stages: [
    { name: 'a', run },
    { name: 'b', run, timeoutMs: 5 },
  ],
})
const other = defineJob('other', { run })

test('every kind has a lane at every priority, urgent ones first', () => {
  const lanes = lanesOf([quick, slow], [])
  expect(lanes.map(({ kind, priority }) => `${priority} ${kind}`)).toEqual([
    '1 quick',
    '1 slow',
    '2 quick',
    '2 slow',
    '3 quick',
    '3 slow',
    '4 quick',
    '4 slow',
  ])
  expect(lanes.find(({ kind }) => kind === 'slow')).toMatchObject({ queue: 'night', stageCount: 2 })
})

test('if queues are given, only their kinds are served', () => {
  expect(new Set(lanesOf([quick, slow], ['night']).map(({ kind }) => kind))).toEqual(new Set(['slow']))
  expect(lanesOf([quick, slow], ['nowhere'])).toEqual([])
})

test('each turn starts with another kind, and a higher priority still comes first', () => {
  const lanes = lanesOf([quick, slow, other], [])
  const firsts = [0, 1, 2, 3].map((turn) => rotated(lanes, turn)[0]?.kind)
  expect(firsts).toEqual(['quick', 'slow', 'other', 'quick'])
  for (const turn of [0, 1, 2]) {
    const turned = rotated(lanes, turn)
    expect(turned.map(({ priority }) => priority)).toEqual(lanes.map(({ priority }) => priority))
    expect(new Set(turned)).toEqual(new Set(lanes))
  }
})

test('without kinds, rotating changes nothing', () => {
  expect(rotated([], 3)).toEqual([])
})

test('an attempt counts as hung only after it had time to wait, run and wind up', () => {
  const config = readConfig({ jobTimeoutMs: 1_000, holdMs: 200, timeoutGraceMs: 300 }, {})
  expect(JSON.parse(deadlinesOf([quick, slow], config))).toEqual({ quick: [900], slow: [1_800, 805] })
})
