import { stormRound } from '../bench/storm-round.mjs'
import { expect, test } from './fixtures.ts'

// `npm run storm` has as many rounds as one likes
test('a fan-out of a thousand items survives workers killed at random every second', { timeout: 330_000 }, async ({
  url,
}) => {
  const { wrongs, ms, kills, revived } = await stormRound({ url })
  console.log(`${ms} ms, ${kills} workers killed, ${revived} revivals`)
  expect(wrongs).toEqual([])
})

test('a storm whose workers cannot connect ends at once and says so', async ({ url }) => {
  const { wrongs } = await stormRound({ url, workerUrl: 'postgres://127.0.0.1:1/none' })
  expect(wrongs[0]).toContain('A worker ended before it could work: code 1')
})
