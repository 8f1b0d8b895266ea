import { expect, test } from 'vitest'
import { makeLanes } from './lanes.ts'

function roomOf(lanes: ReturnType<typeof makeLanes>, name: string): number {
  const room = lanes.room()
  const index = room.lanes.indexOf(name)
  return index === -1 ? room.most : (room.mosts[index] as number)
}

test('a lane that was never heard of gets two at a time', () => {
  const lanes = makeLanes(512)
  expect(roomOf(lanes, 'new')).toBe(2)
  lanes.begin('new')
  expect(roomOf(lanes, 'new')).toBe(1)
})

test('a fast lane gets more, and a slow one two', () => {
  const lanes = makeLanes(512)
  for (const [name, ms] of [['fast', 20] as const, ['slow', 2_000] as const]) {
    lanes.begin(name)
    lanes.end(name, ms)
  }
  expect(roomOf(lanes, 'fast')).toBe(16)
  expect(roomOf(lanes, 'slow')).toBe(2)
})

test('slow lanes together never take everything', () => {
  const lanes = makeLanes(100)
  for (let n = 0; n < 75; n++) {
    lanes.begin(`slow-${n}`)
    lanes.end(`slow-${n}`, 5_000)
    lanes.begin(`slow-${n}`)
  }
  expect(lanes.room()).toMatchObject({ limit: 25, slowLimit: 0 })
})

test('a lane that became fast is given more', () => {
  const lanes = makeLanes(10)
  for (const ms of [5_000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) {
    lanes.begin('mended')
    lanes.end('mended', ms)
  }
  expect(roomOf(lanes, 'mended')).toBeGreaterThan(10)
})
