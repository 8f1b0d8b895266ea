import { expect, test } from 'vitest'
import { priorities } from '../job/names.ts'
import type { ClaimBatch } from '../transitions/claim.sql.ts'
import { Floors } from './floors.ts'

const lanes = [1, 2].map((priority) => ({ queue: 'q', kind: 'k', priority, stageCount: 1 }))
const second = 1_000_000
const batchDue = (due_us: number, priority = 2) => ({ queue: 'q', kind: 'k', priority, due_us }) as ClaimBatch

/** Floors that have reached this time in the second lane, with a claim that took that long. */
function reached(due_us: number, { isFilled, ms }: { isFilled: boolean; ms: number }): Floors {
  const floors = new Floors()
  const { isFull } = floors.look(lanes, 0)
  floors.raise([batchDue(due_us)], { isFull, isFilled, ms, nowMs: ms })
  return floors
}

test('the first look is at everything', () => {
  expect(new Floors().look(lanes, 0)).toMatchObject({ floors: [null, null], isFull: true })
})

test('a busy worker starts each lane at its floor, and looks further back four times a second', () => {
  const floors = reached(100 * second, { isFilled: true, ms: 1 })
  expect(floors.look(lanes, 10)).toMatchObject({ floors: [null, 100 * second], isFull: false })
  expect(floors.look(lanes, 249)).toMatchObject({ floors: [null, 100 * second], isFull: false })
  expect(floors.look(lanes, 250)).toMatchObject({ floors: [null, null], isFull: true })
  expect(floors.look(lanes, 260)).toMatchObject({ floors: [null, 100 * second], isFull: false })
})

test('an idle worker looks at everything, if that is fast', () => {
  const floors = reached(100 * second, { isFilled: false, ms: 1 })
  expect(floors.look(lanes, 41)).toMatchObject({ floors: [null, null], isFull: true })
})

test('if a look at everything is slow, a busy worker rarely makes one, and looks two seconds back in between', () => {
  const floors = reached(100 * second, { isFilled: true, ms: 100 })
  expect(floors.look(lanes, 4_099)).toMatchObject({ floors: [null, 98 * second], isFull: false })
  expect(floors.look(lanes, 4_400)).toMatchObject({ floors: [null, null], isFull: true })
})

test('an idle worker looks at everything every second, and a busy one every five, however slow the last look was', () => {
  const idle = reached(100 * second, { isFilled: false, ms: 60_000 })
  expect(idle.look(lanes, 60_999)).toMatchObject({ floors: [null, 98 * second], isFull: false })
  expect(idle.look(lanes, 61_000).isFull).toBe(true)
  const busy = reached(100 * second, { isFilled: true, ms: 60_000 })
  expect(busy.look(lanes, 64_999).isFull).toBe(false)
  expect(busy.look(lanes, 65_300).isFull).toBe(true)
})

test('a floor never goes down', () => {
  const floors = reached(100 * second, { isFilled: true, ms: 1 })
  floors.raise([batchDue(90 * second), batchDue(50 * second, 1)], { isFull: false, isFilled: true, ms: 1, nowMs: 2 })
  expect(floors.look(lanes, 10).floors).toEqual([50 * second, 100 * second])
})

test('looks at everything start with each kind in turn, however they fall among the others', () => {
  const three = priorities.flatMap((priority) =>
    ['a', 'b', 'c'].map((kind) => ({ queue: 'q', kind, priority, stageCount: 1 })),
  )
  const floors = new Floors()
  const firstOfFull: string[] = []
  // each look is so slow that every third one is at everything
  for (let nowMs = 0; firstOfFull.length < 6; nowMs += 100) {
    const { lanes: inTurn, isFull } = floors.look(three, nowMs)
    if (isFull) firstOfFull.push(inTurn[0]?.kind as string)
    floors.raise([], { isFull, isFilled: true, ms: 5, nowMs })
  }
  expect(firstOfFull).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
})
