import { Agent, request } from 'node:http'

/** The address of attackers; the neighbor has 127.0.0.1. */
export const elsewhere = '127.0.1.1'

export function makeAgent(maxSockets, localAddress) {
  return new Agent({ keepAlive: true, maxSockets, ...(localAddress ? { localAddress } : {}) })
}

let asked = 0

/** How many requests this process has made. */
export const askedSoFar = () => asked

/** Counts requests that were made without `ask`. */
export function countAsked(count) {
  asked += count
}

/** Sends one request and returns its status and text. With a body it is a POST. */
export function ask({ agent, url, path, key, body }) {
  asked += 1
  const text =
    body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const asking = request(
      `${url}${path}`,
      {
        agent,
        method: text === undefined ? 'GET' : 'POST',
        headers: {
          ...(key ? { authorization: `Bearer ${key}` } : {}),
          ...(text === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        },
      },
      (response) => {
        let answer = ''
        response.setEncoding('utf8')
        response.on('data', (part) => {
          answer += part
        })
        response.on('end', () => resolve({ status: response.statusCode, text: answer }))
        response.on('error', reject)
      },
    )
    asking.on('error', reject)
    asking.end(text)
  })
}

/**
 * Starts something at a fixed rate until the end, whether or not it is answered, as long as fewer than `most` are in progress. Errors are ignored.
 * The rate is fixed because an attack at full speed would measure the machine.
 */
export async function atRate({ perSecond, most }, signal, work) {
  const sinceMs = performance.now()
  let turn = 0
  let underWay = 0
  while (!signal.aborted) {
    const due = ((performance.now() - sinceMs) * perSecond) / 1000
    for (; turn < due; turn++) {
      if (underWay >= most) continue
      underWay += 1
      work(turn)
        .catch(() => {})
        .finally(() => {
          underWay -= 1
        })
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Repeats something in parallel lanes until the end. Errors are ignored. */
export async function inLanes(lanes, signal, work) {
  let count = 0
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (!signal.aborted) {
        const worked = await work(count++).then(
          () => true,
          () => false,
        )
        // a server that refuses is asked again, but not at full speed
        if (!worked) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }),
  )
}
