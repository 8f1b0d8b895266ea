import { expect, test } from 'vitest'
import { ApartLanes } from './apart-lanes.ts'
import { keyOf } from './lanes.ts'

const lane = (kind: string) => ({ queue: 'q', kind, priority: 1, stageCount: 1 })
const lanes = ['a', 'b', 'c'].map(lane)

test('a lane in which claims fail is left out until a claim of it succeeds', () => {
  const apart = new ApartLanes(keyOf)
  expect(apart.together(lanes)).toEqual(lanes)
  apart.add([lane('b')], { nowMs: 0, tookMs: 0 })
  expect(apart.together(lanes)).toEqual([lane('a'), lane('c')])
  apart.remove(lane('b'))
  expect(apart.together(lanes)).toEqual(lanes)
})

test('it is claimed now and then, the less often the longer that takes', () => {
  const apart = new ApartLanes(keyOf)
  apart.add([lane('b')], { nowMs: 0, tookMs: 10 })
  expect([999, 1_000].map((nowMs) => apart.next(lanes, nowMs))).toEqual([undefined, lane('b')])
  apart.add([lane('b')], { nowMs: 0, tookMs: 300 })
  expect([2_999, 3_000].map((nowMs) => apart.next(lanes, nowMs))).toEqual([undefined, lane('b')])
})

test('of several, the one that has waited longest comes first, and lanes of others never', () => {
  const apart = new ApartLanes(keyOf)
  apart.add([lane('c'), lane('elsewhere')], { nowMs: 0, tookMs: 0 })
  apart.add([lane('a')], { nowMs: 5, tookMs: 0 })
  expect(apart.next(lanes, 2_000)).toEqual(lane('c'))
  apart.add([lane('c')], { nowMs: 2_000, tookMs: 0 })
  expect(apart.next(lanes, 2_000)).toEqual(lane('a'))
})
