// Loaded: a drain beside many finished and many scheduled rows, as a share of a drain without them right before.
import { drainOnce } from './drain.mjs'

export const loaded = {
  name: 'loaded',
  // rows are added by SQL, for which Redis has no short cut; and defaults that drain slowly would hide what rows cost
  takesPart: ({ isOurs, isBest, redis }) => (isOurs || isBest) && !redis,
  needsTwoPlaces: true,
  figures: { loaded: { title: 'drain beside finished and scheduled rows', unit: 'of empty', better: 'more' } },
  async run(at) {
    const empty = await at.elsewhere()
    const alone = await drainOnce(empty, 1)
    await empty.client.close()
    await at.server.run(at.fill('noop', { finished: at.scale.rows, scheduled: at.scale.rows }))
    await at.server.run(['vacuum analyze'])
    const beside = await drainOnce(at, 1)
    return { loaded: beside.rate / alone.rate }
  },
}
