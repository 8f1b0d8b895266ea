// The control: a server in its own process that reads each request and refuses it. Attacked in place of Holdfast, it shows what the same traffic costs a
// neighbor on a machine that clients, server and Postgres share.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(import.meta.url)

export async function startRefusingServer() {
  // its own session, like the server that it stands in for: Linux shares the CPU among sessions first
  const child = fork(own, { detached: true })
  const exited = once(child, 'exit')
  const [port] = await once(child, 'message')
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.disconnect()
      await exited
    },
  }
}

if (process.argv[1] === own) {
  process.on('disconnect', () => process.exit(0))
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(429, { 'content-type': 'application/problem+json' }).end('{}'))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}
