// Bulk submit: one caller, the contender's own call for many jobs, in batches of the same size for all.
import { numbers } from './drain.mjs'

export const bulk = {
  name: 'bulk',
  figures: { bulk: { title: 'bulk submit', unit: 'jobs/s', better: 'more' } },
  async run({ client, server, scale }) {
    await client.submitMany('noop', numbers(0, Math.min(scale.batch, 1000))) // connections and code get warm
    await server.quiesce()
    const startedMs = performance.now()
    for (let n = 0; n < scale.jobs; n += scale.batch)
      await client.submitMany('noop', numbers(n, Math.min(scale.batch, scale.jobs - n)))
    return { bulk: scale.jobs / ((performance.now() - startedMs) / 1000) }
  },
}
