// Well-formed keys that do not exist, each another one, from 50 addresses.
import { randomBytes, randomUUID } from 'node:crypto'
import { ask, inLanes, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const addresses = 50

export async function attack({ url, signal, begun }) {
  const agents = Array.from({ length: addresses }, (_, index) => makeAgent(2, `127.0.1.${index + 1}`))
  begun()
  await inLanes(addresses, signal, (turn) => {
    const key = `hf_${randomUUID().replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`
    return ask({ agent: agents[turn % addresses], url, path: '/v1/jobs', key })
  })
}
