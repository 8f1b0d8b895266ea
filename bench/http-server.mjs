// A server in its own process for bench/http.mjs: sends its URL, and reports its memory when asked.
import { connect, defineJob } from 'holdfast'
import { makeHttpServer } from '../dist/http/server.js'

const noop = defineJob('noop', { run: () => undefined })
const hf = await connect({
  url: process.env.BENCH_URL,
  jobs: [noop],
  logLevel: 'error',
  httpPort: 0,
  httpRate: 10_000_000,
})
const server = makeHttpServer({ engine: () => hf, config: hf.config, log: console, jobs: [noop], needsKey: true })
await server.start()
process.on('message', (message) => {
  if (message === 'memory') {
    globalThis.gc?.()
    process.send({ rss: process.memoryUsage().rss })
  }
  if (message === 'stop')
    server
      .stop()
      .then(() => hf.close())
      .then(() => process.exit(0))
})
process.send({ url: server.url() })
