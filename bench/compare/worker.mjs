// One worker process of a contender. It reports when it is ready, starts when told, and reports what its handlers get.
import { adapterOf } from './contenders.mjs'

const { contender, database, task, concurrency, wantsLatency } = JSON.parse(process.argv[2])
const tell = (type, value) => process.connected && process.send({ type, value })
const hour = 3_600_000
let handled = 0
let reported = 0
const handlers = {
  noop: () => {
    handled += 1
  },
  // the monotonic clock is the same in all processes of a machine
  stamp: (n) => tell('stamped', { n, at: Number(process.hrtime.bigint()) }),
  hang: (n) => {
    tell('hanging', n)
    return new Promise((resolve) => setTimeout(resolve, hour))
  },
}

process.on('disconnect', () => process.exit())
const adapter = await adapterOf(contender)
const worker = await adapter.worker(
  database,
  { isBest: contender.isBest, wantsLatency, concurrency },
  { task, handler: handlers[task] },
)
let cpuAtStart = process.cpuUsage()

process.on('message', async (order) => {
  if (order === 'start') {
    cpuAtStart = process.cpuUsage()
    await worker.start()
    tell('started')
  }
  if (order === 'cpu') {
    const { user, system } = process.cpuUsage(cpuAtStart)
    tell('cpu', (user + system) / 1e6)
  }
})

// counted here and reported now and then: asking the database for each would load what is measured
setInterval(() => {
  if (handled === reported) return
  reported = handled
  tell('handled', handled)
}, 10)
tell('ready')
