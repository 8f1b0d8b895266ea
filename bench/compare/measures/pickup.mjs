// Pickup: an idle system, one job at a time; from the call of submit to the first line of the handler in another process.
import { once } from 'node:events'
import { percentile } from '../statistics.mjs'
import { pause } from './drain.mjs'

// the first jobs meet cold caches
const cold = 5

export const pickup = {
  name: 'pickup',
  wantsLatency: true,
  figures: {
    pickup50: { title: 'pickup, p50', unit: 'ms', better: 'less' },
    pickup95: { title: 'pickup, p95', unit: 'ms', better: 'less' },
    pickup99: { title: 'pickup, p99', unit: 'ms', better: 'less' },
  },
  async run(context) {
    const waits = await pickUp(context, context.scale.samples)
    return { pickup50: percentile(waits, 0.5), pickup95: percentile(waits, 0.95), pickup99: percentile(waits, 0.99) }
  },
}

/** How long each of a number of lone jobs waited, in milliseconds. */
export async function pickUp({ client, prepareWorkers, scale }, samples) {
  const workers = await prepareWorkers(1, { task: 'stamp' })
  await workers.start()
  const { events } = workers.all[0]
  const waits = []
  const untilMs = performance.now() + scale.pickupCapMs
  for (let n = 0; n < samples + cold && performance.now() < untilMs; n++) {
    await pause(10 + Math.random() * 20) // until it is idle again
    const stamped = once(events, 'stamped')
    const calledAt = Number(process.hrtime.bigint())
    await client.submit('stamp', n)
    const [{ at }] = await stamped
    waits.push((at - calledAt) / 1e6)
  }
  // a worker that is killed before it has written its last outcome would leave a job behind
  const writtenMs = performance.now() + 2_000
  while ((await client.left('stamp')) > 0 && performance.now() < writtenMs) await pause(10)
  await workers.kill()
  waits.splice(0, Math.min(cold, Math.floor(waits.length / 2)))
  return waits
}
