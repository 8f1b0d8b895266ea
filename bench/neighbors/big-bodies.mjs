// Large bodies of many small values, eight at once every two seconds: one input of 1 MB, batches of 4 MB, and 14 MB that no server should take.
import { ask, atRate, elsewhere, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const atOnce = 8

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(atOnce, elsewhere)
  const key = keys.attacker
  const bodies = [
    ['/v1/jobs', JSON.stringify({ kind: 'noop', input: values(1_000_000) })],
    ['/v1/jobs/batch', batch(4_000_000, 2_000)],
    ['/v1/jobs/batch', batch(4_000_000, 900_000)],
    ['/v1/jobs/batch', batch(14_000_000, 2_000)],
  ].map(([path, text]) => [path, Buffer.from(text)])
  begun()
  await atRate({ perSecond: 0.5, most: 1 }, signal, () =>
    Promise.allSettled(
      Array.from({ length: atOnce }, (_, turn) => {
        const [path, body] = bodies[turn % bodies.length]
        return ask({ agent, url, path, key, body })
      }),
    ),
  )
}

/** A list of small objects that is about so many bytes as JSON. */
function values(bytes) {
  return Array.from({ length: bytes / 8 }, () => ({ a: 1 }))
}

function batch(bytes, each) {
  const job = { kind: 'noop', input: values(each) }
  return JSON.stringify({ jobs: Array.from({ length: bytes / each }, () => job) })
}
