// Pickup: an idle system, one job at a time; from the call of submit to the first line of the handler in another process.
import { once } from 'node:events'
import { percentile } from '../statistics.mjs'
import { pause } from './drain.mjs'

// the first ones find everything cold
const cold = 5

export const pickup = {
  name: 'pickup',
  wantsLatency: true,
  figures: {
    pickup50: { title: 'pickup, p50', unit: 'ms', better: 'less' },
    pickup95: { title: 'pickup, p95', unit: 'ms', better: 'less' },
    pickup99: { title: 'pickup, p99', unit: 'ms', better: 'less' },
  },
  async run({ client, summon, scale }) {
    const crew = await summon(1, { task: 'stamp' })
    await crew.start()
    const { told } = crew.members[0]
    const waits = []
    const untilMs = performance.now() + scale.pickupCapMs
    for (let n = 0; n < scale.samples + cold && performance.now() < untilMs; n++) {
      await pause(10 + Math.random() * 20) // until it is idle again
      const stamped = once(told, 'stamped')
      const calledAt = Number(process.hrtime.bigint())
      await client.submit('stamp', n)
      const [{ at }] = await stamped
      waits.push((at - calledAt) / 1e6)
    }
    await crew.kill()
    waits.splice(0, Math.min(cold, Math.floor(waits.length / 2)))
    return { pickup50: percentile(waits, 0.5), pickup95: percentile(waits, 0.95), pickup99: percentile(waits, 0.99) }
  },
}
