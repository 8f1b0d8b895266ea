// Old snapshot: drain after drain next to a transaction that stays open, so that none of the dead rows can be vacuumed.
import { percentile } from '../statistics.mjs'
import { drainOnce } from './drain.mjs'
import { pickUp } from './pickup.mjs'

const drains = 10
const mostSamples = 100

export const oldSnapshot = {
  name: 'old-snapshot',
  // Redis has no snapshots; and defaults that drain slowly would hide the cost of dead rows
  takesPart: ({ isOurs, isBest, redis }) => (isOurs || isBest) && !redis,
  figures: {
    oldSnapshot: { title: 'tenth drain with an old snapshot open', unit: 'relative to the first', better: 'more' },
    oldSnapshotDrain: { title: 'tenth drain with an old snapshot open', unit: 'jobs/s', better: 'more' },
    oldSnapshotPickup: { title: 'pickup after those drains, p50', unit: 'relative to before them', better: 'less' },
  },
  async run(context) {
    await context.server.run(['begin isolation level repeatable read', 'select count(*) from pg_class'])
    const samples = Math.min(mostSamples, context.scale.samples)
    const before = percentile(await pickUp(context, samples), 0.5)
    const rates = []
    for (let n = 0; n < drains; n++) rates.push((await drainOnce(context, 1)).rate)
    const after = percentile(await pickUp(context, samples), 0.5)
    await context.server.run(['commit'])
    return { oldSnapshot: rates.at(-1) / rates[0], oldSnapshotDrain: rates.at(-1), oldSnapshotPickup: after / before }
  },
}
