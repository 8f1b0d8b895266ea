// Mixed: the same steady stream of submits, cancels and reads for every contender, while one worker process drains what is submitted.
import { percentile } from '../statistics.mjs'
import { pause } from './drain.mjs'

const tickMs = 10
const perTick = { submit: 4, cancel: 0.5, read: 2 }
const mostAtOnce = 500
const hour = 3_600_000

export const mixed = {
  name: 'mixed',
  wantsLatency: true,
  figures: {
    mixedSubmit: { title: 'mixed load: submit, p99', unit: 'ms', better: 'less' },
    mixedPickup: { title: 'mixed load: submit to handler, p99', unit: 'ms', better: 'less' },
    mixedCancel: { title: 'mixed load: cancel, p99', unit: 'ms', better: 'less' },
    mixedRead: { title: 'mixed load: read, p99', unit: 'ms', better: 'less' },
  },
  async run({ client, server, prepareWorkers, scale }) {
    const workers = await prepareWorkers(1, { task: 'stamp' })
    await workers.start()
    const calledAt = new Map()
    const waits = { submit: [], cancel: [], read: [], pickup: [] }
    workers.all[0].events.on('stamped', ({ n, at }) => {
      waits.pickup.push((at - calledAt.get(n)) / 1e6)
      calledAt.delete(n)
    })
    const toCancel = []
    const recent = []
    let n = 0
    const calls = {
      async submit() {
        const number = n++
        calledAt.set(number, Number(process.hrtime.bigint()))
        const id = await timed(waits.submit, () => client.submit('stamp', number))
        recent.push(id)
        if (recent.length > 1000) recent.shift()
      },
      async cancel() {
        const id = toCancel.pop()
        if (id !== undefined) await timed(waits.cancel, () => client.cancel(id))
        toCancel.unshift(await client.submit('stamp', -1, { delayMs: hour }))
      },
      async read() {
        const id = recent[Math.floor(Math.random() * recent.length)]
        if (id !== undefined) await timed(waits.read, () => client.read(id, 'stamp'))
      },
    }
    for (let index = 0; index < 20; index++) toCancel.push(await client.submit('stamp', -1, { delayMs: hour }))
    await server.quiesce()
    await stream(calls, scale.mixedMs)
    await pause(Math.min(2000, scale.mixedMs))
    await workers.kill()
    // jobs that have not started by now waited at least until now
    const now = Number(process.hrtime.bigint())
    for (const at of calledAt.values()) waits.pickup.push((now - at) / 1e6)
    return {
      mixedSubmit: percentile(waits.submit, 0.99),
      mixedPickup: percentile(waits.pickup, 0.99),
      mixedCancel: percentile(waits.cancel, 0.99),
      mixedRead: percentile(waits.read, 0.99),
    }
  },
}

/** Calls at a fixed rate, whether or not earlier calls have been answered. A limit keeps memory in check. */
async function stream(calls, ms) {
  const startedMs = performance.now()
  const called = { submit: 0, cancel: 0, read: 0 }
  const underWay = new Set()
  while (performance.now() - startedMs < ms) {
    const ticks = (performance.now() - startedMs) / tickMs
    for (const [name, rate] of Object.entries(perTick))
      for (; called[name] < ticks * rate; called[name]++) {
        if (underWay.size >= mostAtOnce) continue
        const call = calls[name]().finally(() => underWay.delete(call))
        underWay.add(call)
      }
    await pause(tickMs)
  }
  await Promise.all(underWay)
}

async function timed(waits, call) {
  const startedMs = performance.now()
  const answer = await call()
  waits.push(performance.now() - startedMs)
  return answer
}
