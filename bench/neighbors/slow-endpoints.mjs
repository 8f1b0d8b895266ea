// 700 endpoints of one tenant that accept a delivery and never answer.
import { createServer } from 'node:http'
import { ask, elsewhere, inLanes, makeAgent } from './support/ask.mjs'

export const measures = ['webhook']

const endpoints = 700

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(8, elsewhere)
  const key = keys.attacker
  const silent = createServer((request) => request.resume())
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address()
  const made = new AbortController()
  await inLanes(8, AbortSignal.any([signal, made.signal]), async (turn) => {
    if (turn >= endpoints) return made.abort()
    const body = { url: `http://127.0.0.1:${port}/${turn}`, types: ['job.submitted'] }
    await ask({ agent, url, path: '/v1/webhooks', key, body })
  })
  begun()
  await inLanes(1, signal, async () => {
    await ask({ agent, url, path: '/v1/jobs', key, body: { kind: 'noop' } })
    await new Promise((resolve) => setTimeout(resolve, 500))
  })
}
