// Recovery: kill -9 of a worker with twenty running jobs; from the kill until another worker has restarted the last of them.
// All have twenty handlers, and their defaults otherwise.
import { pause } from './drain.mjs'

const jobs = 20

export const recovery = {
  name: 'recovery',
  takesPart: ({ isBest }) => !isBest,
  // one that does not recover in time would not do so in the next round either
  isOverAtCap: true,
  figures: { recovery: { title: 'recovery after kill -9', unit: 's', better: 'less' } },
  async run({ client, prepareWorkers, scale }) {
    const order = { task: 'hang', concurrency: jobs }
    const [victim, heir] = await Promise.all([prepareWorkers(1, order), prepareWorkers(1, order)])
    const before = seenBy(victim)
    const after = seenBy(heir)
    await victim.start()
    for (let n = 0; n < jobs; n++) await client.submit('hang', n)
    const hasBegun = await reached(before, performance.now() + scale.recoveryCapMs)
    if (!hasBegun) throw new Error(`only ${before.size} of ${jobs} jobs ran before the kill`)
    await heir.start()
    const killedMs = performance.now()
    await victim.kill()
    const isBack = await reached(after, killedMs + scale.recoveryCapMs)
    const seconds = (performance.now() - killedMs) / 1000
    await heir.kill()
    return { recovery: isBack ? seconds : { atLeast: scale.recoveryCapMs / 1000 } }
  },
}

function seenBy(workers) {
  const seen = new Set()
  workers.all[0].events.on('hanging', (n) => seen.add(n))
  return seen
}

async function reached(seen, untilMs) {
  while (seen.size < jobs && performance.now() < untilMs) await pause(5)
  return seen.size === jobs
}
