// Loaded: a drain next to many finished and many scheduled rows, as a share of a drain without them right before.
import { drainOnce } from './drain.mjs'

export const loaded = {
  name: 'loaded',
  // rows are added with SQL, which Redis has not; and defaults that drain slowly would hide the cost of rows
  takesPart: ({ isOurs, isBest, redis }) => (isOurs || isBest) && !redis,
  needsEmptyDatabase: true,
  figures: {
    loaded: { title: 'drain with finished and scheduled rows', unit: 'relative to an empty database', better: 'more' },
  },
  async prepare({ server, fill, scale }) {
    await server.run(fill('noop', { finished: scale.rows, scheduled: scale.rows }))
    await server.run(['vacuum analyze'])
  },
  async run(context) {
    const empty = await context.onEmptyDatabase()
    const alone = await drainOnce(empty, 1)
    await empty.client.close()
    const beside = await drainOnce(context, 1)
    return { loaded: beside.rate / alone.rate }
  },
}
