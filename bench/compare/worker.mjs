// One worker process of a contender. It says when it is ready, starts when told, and reports what its handlers see.
import { wordsOf } from './contenders.mjs'

const { contender, place, task, concurrency, wantsLatency } = JSON.parse(process.argv[2])
const tell = (type, value) => process.connected && process.send({ type, value })
const hour = 3_600_000
let handled = 0
let toldHandled = 0
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
const words = await wordsOf(contender)
const worker = await words.worker(
  place,
  { isBest: contender.isBest, wantsLatency, concurrency },
  { task, handler: handlers[task] },
)
let cpuAtStart = process.cpuUsage()

process.on('message', async (word) => {
  if (word === 'start') {
    cpuAtStart = process.cpuUsage()
    await worker.start()
    tell('started')
  }
  if (word === 'cpu') {
    const { user, system } = process.cpuUsage(cpuAtStart)
    tell('cpu', (user + system) / 1e6)
  }
})

// counted here and told now and then: a look into the database for each would load what is measured
setInterval(() => {
  if (handled === toldHandled) return
  toldHandled = handled
  tell('handled', handled)
}, 10)
tell('ready')
