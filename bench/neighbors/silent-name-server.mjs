// Endpoints with names that the name server never answers.
import { createSocket } from 'node:dgram'
import { ask, elsewhere, inLanes, makeAgent } from './support/ask.mjs'

export const measures = ['webhook']

/** A name server on loopback that never answers. */
export async function openEnvironment() {
  const socket = createSocket('udp4')
  await new Promise((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    env: { HOLDFAST_WEBHOOK_NAME_SERVERS: `127.0.0.1:${socket.address().port}` },
    stop: () => new Promise((resolve) => socket.close(resolve)),
  }
}

const endpoints = 20

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(4, elsewhere)
  const key = keys.attacker
  for (let index = 0; index < endpoints; index++) {
    const body = { url: `https://hook${index}.silent.test/`, types: ['job.submitted'] }
    await ask({ agent, url, path: '/v1/webhooks', key, body })
  }
  begun()
  await inLanes(1, signal, async () => {
    await ask({ agent, url, path: '/v1/jobs', key, body: { kind: 'noop' } })
    await new Promise((resolve) => setTimeout(resolve, 100))
  })
}
