// The neighbor: a tenant that submits, reads and gets webhooks at a steady rate, whether or not the answers come.
import { createServer } from 'node:http'
import { ask, makeAgent } from './ask.mjs'

const everyMs = 25
/** A request that takes longer counts as failed. */
const patienceMs = 10_000
/** Several, so that keys are looked up all the time and not just once. */
const keyCount = 20

export async function openNeighbor(server, measures) {
  const { url, keys, keyOf } = server
  const agent = makeAgent(64)
  const mine = await Promise.all(Array.from({ length: keyCount }, () => keyOf('neighbor', 'submit', 'read')))
  let turn = 0
  const keyInTurn = () => mine[turn++ % keyCount]
  // registers the kind; no worker runs it
  await must(ask({ agent, url, path: '/v1/sessions', key: keys.all, body: { kinds: [{ name: 'noop' }] } }), 201)
  const receiver = await openReceiver()
  const hasHooks = measures.includes('webhook')
  const hook = { url: receiver.url, types: ['job.submitted'], tenant: 'neighbor' }
  if (hasHooks) await must(ask({ agent, url, path: '/v1/webhooks', key: keys.all, body: hook }), 201)
  const submit = async () => {
    const body = { kind: 'noop', input: { name: 'you' } }
    return must(ask({ agent, url, path: '/v1/jobs', key: keyInTurn(), body }), 202)
  }
  const { id } = await submit()
  const ways = {
    submit,
    get: () => must(ask({ agent, url, path: `/v1/jobs/${id}`, key: keyInTurn() }), 200),
    webhook: async () => receiver.arrival((await submit()).id),
  }

  return {
    /** How long each request took that began within this time, in milliseconds; infinite if it failed. */
    async measure(forMs) {
      const pending = Object.fromEntries(measures.map((what) => [what, []]))
      const sinceMs = performance.now()
      for (let count = 0; performance.now() - sinceMs < forMs; count++) {
        for (const what of measures) pending[what].push(timed(ways[what]))
        const nextMs = sinceMs + (count + 1) * everyMs
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, nextMs - performance.now())))
      }
      const done = Object.entries(pending).map(async ([what, all]) => [what, await Promise.all(all)])
      return Object.fromEntries(await Promise.all(done))
    },
    async close() {
      agent.destroy()
      await receiver.close()
    },
  }
}

async function timed(work) {
  const sinceMs = performance.now()
  let timer
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, patienceMs, Number.POSITIVE_INFINITY)
  })
  const took = work().then(
    () => performance.now() - sinceMs,
    () => Number.POSITIVE_INFINITY,
  )
  const ms = await Promise.race([took, late])
  clearTimeout(timer)
  return ms
}

async function must(asking, status) {
  const answer = await asking
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${answer.text.slice(0, 300)}`)
  return JSON.parse(answer.text)
}

/** Receives the webhooks of the neighbor, and resolves `arrival` when the first one of a job has come. */
async function openReceiver() {
  const arrived = new Set()
  const waiting = new Map()
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part) => {
      text += part
    })
    request.on('end', () => {
      response.end()
      const id = JSON.parse(text).subject
      arrived.add(id)
      waiting.get(id)?.()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    arrival: (id) =>
      new Promise((resolve) => {
        if (arrived.has(id)) resolve()
        else waiting.set(id, resolve)
      }),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
