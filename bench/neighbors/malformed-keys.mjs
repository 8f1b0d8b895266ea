// Malformed keys of 15 kB, a different one each time: 2,000 a second from 50 addresses.
import { ask, atRate, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const addresses = 50
const perSecond = 2_000

export async function attack({ url, signal, begun }) {
  const agents = Array.from({ length: addresses }, (_, index) => makeAgent(2, `127.0.1.${index + 1}`))
  const filler = 'x'.repeat(15_000)
  begun()
  await atRate({ perSecond, most: 2 * addresses }, signal, (turn) =>
    ask({ agent: agents[turn % addresses], url, path: '/v1/jobs', key: `hf_${turn}${filler}` }),
  )
}
