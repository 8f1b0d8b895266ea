// One run in its own process: one contender, one measure, one round. Everything that it loads and leaves behind ends with it.
import { adapterOf } from './contenders.mjs'
import { measures } from './measures.mjs'
import { openDatabase } from './postgres.mjs'
import { prepareWorkers } from './worker-processes.mjs'

process.on('disconnect', () => process.exit())
const { contender, measure: name, database, emptyDatabase, scale } = JSON.parse(process.argv[2])
const measure = measures.find((one) => one.name === name)
try {
  const context = await contextAt(database, measure.prepare)
  const figures = await measure.run(context)
  process.send({ figures }, () => process.exit())
} catch (error) {
  process.send({ failed: String(error?.message ?? error) }, () => process.exit())
}

/** What a measure uses: the contender's client, its server, and its workers. */
async function contextAt(where, prepare) {
  const adapter = await adapterOf(contender)
  const wantsLatency = measure.wantsLatency === true
  const server = await serverAt(where)
  await prepare?.({ server, fill: adapter.fill, scale })
  return {
    contender,
    scale,
    server,
    client: await adapter.open(where, { isBest: contender.isBest, wantsLatency }),
    prepareWorkers: (count, order) => prepareWorkers(count, { contender, database: where, wantsLatency, ...order }),
    /** The same contender on another, empty database. */
    onEmptyDatabase: emptyDatabase && (() => contextAt(emptyDatabase)),
  }
}

// loaded only when needed: everything on Postgres runs without its package
async function serverAt({ url, redis }) {
  if (!redis) return openDatabase(url)
  const { openRedis } = await import('./redis.mjs')
  return openRedis(redis)
}
