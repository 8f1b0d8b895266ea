// Keys of 15 kB that are none, each another one.
import { ask, inLanes, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const addresses = 50

export async function attack({ url, signal, begun }) {
  const agents = Array.from({ length: addresses }, (_, index) => makeAgent(2, `127.0.1.${index + 1}`))
  const filler = 'x'.repeat(15_000)
  begun()
  await inLanes(addresses, signal, (turn) =>
    ask({ agent: agents[turn % addresses], url, path: '/v1/jobs', key: `hf_${turn}${filler}` }),
  )
}
