// A tenant opens sessions with 200 kinds each, up to 20,000, and submits jobs of kinds that do not exist, 200 a second.
import { ask, atRate, elsewhere, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']
export const leadMs = 4_000

const mostSessions = 100

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(8, elsewhere)
  const key = keys.attacker
  begun()
  await atRate({ perSecond: 200, most: 8 }, signal, async (turn) => {
    const kinds = Array.from({ length: 200 }, (_, index) => ({ name: `k${turn}-${index}` }))
    if (turn < mostSessions) await ask({ agent, url, path: '/v1/sessions', key, body: { kinds } })
    await ask({ agent, url, path: '/v1/jobs', key, body: { kind: `missing${turn}` } })
  })
}
