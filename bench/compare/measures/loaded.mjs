// Loaded: a drain beside many finished and many scheduled rows, as a share of a drain without them right before.
import { drainOnce } from './drain.mjs'

export const loaded = {
  name: 'loaded',
  // rows are added by SQL, for which Redis has no short cut; and defaults that drain slowly would hide what rows cost
  takesPart: ({ isOurs, isBest, redis }) => (isOurs || isBest) && !redis,
  needsTwoPlaces: true,
  figures: { loaded: { title: 'drain beside finished and scheduled rows', unit: 'of empty', better: 'more' } },
  async prepare({ server, fill, scale }) {
    await server.run(fill('noop', { finished: scale.rows, scheduled: scale.rows }))
    await server.run(['vacuum analyze'])
  },
  async run(at) {
    const empty = await at.elsewhere()
    const alone = await drainOnce(empty, 1)
    await empty.client.close()
    const beside = await drainOnce(at, 1)
    return { loaded: beside.rate / alone.rate }
  },
}
