import { stormRound } from '../bench/storm-round.mjs'
import { expect, test } from './fixtures.ts'

test.for([1, 2])(
  'a fan-out of a thousand items survives workers killed at random every second (round %i)',
  { timeout: 330_000 },
  async (_round, { url }) => {
    const { wrongs, ms, kills, revived } = await stormRound({ url })
    console.log(`${ms} ms, ${kills} workers killed, ${revived} revivals`)
    expect(wrongs).toEqual([])
  },
)
