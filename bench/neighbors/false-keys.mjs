// Well-formed keys that do not exist, a different one each time: 2,000 a second from 50 addresses.
import { randomBytes, randomUUID } from 'node:crypto'
import { ask, atRate, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const addresses = 50
const perSecond = 2_000

export async function attack({ url, signal, begun }) {
  const agents = Array.from({ length: addresses }, (_, index) => makeAgent(2, `127.0.1.${index + 1}`))
  begun()
  await atRate({ perSecond, most: 2 * addresses }, signal, (turn) => {
    const key = `hf_${randomUUID().replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`
    return ask({ agent: agents[turn % addresses], url, path: '/v1/jobs', key })
  })
}
