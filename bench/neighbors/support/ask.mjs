import { Agent, request } from 'node:http'

export function makeAgent(maxSockets, localAddress) {
  return new Agent({ keepAlive: true, maxSockets, ...(localAddress ? { localAddress } : {}) })
}

/** One request; its status and text. A body makes it a POST. */
export function ask({ agent, url, path, key, body }) {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
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

/** Does something over and over in so many lanes until the end, and lets nothing stop it. */
export async function inLanes(lanes, signal, work) {
  let count = 0
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (!signal.aborted) {
        const worked = await work(count++).then(
          () => true,
          () => false,
        )
        // a server that refuses is asked on, but not as fast as the machine can
        if (!worked) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }),
  )
}
