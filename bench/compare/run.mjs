// One run in a process of its own: one contender, one measure, one round. What it loads and leaves behind goes with it.
import { wordsOf } from './contenders.mjs'
import { summon } from './crew.mjs'
import { measures } from './measures.mjs'
import { openDatabase } from './postgres.mjs'

process.on('disconnect', () => process.exit())
const { contender, measure: name, place, emptyPlace, scale } = JSON.parse(process.argv[2])
const measure = measures.find((one) => one.name === name)
try {
  const at = await standAt(place, measure.prepare)
  const figures = await measure.run(at)
  process.send({ figures }, () => process.exit())
} catch (error) {
  process.send({ failed: String(error?.message ?? error) }, () => process.exit())
}

/** What a measure has at hand: the contender's client, its server, and workers of its own. */
async function standAt(where, prepare) {
  const words = await wordsOf(contender)
  const wantsLatency = measure.wantsLatency === true
  const server = await serverAt(where)
  await prepare?.({ server, fill: words.fill, scale })
  return {
    contender,
    scale,
    server,
    client: await words.open(where, { isBest: contender.isBest, wantsLatency }),
    summon: (count, order) => summon(count, { contender, place: where, wantsLatency, ...order }),
    /** The same contender on another database, with nothing in it. */
    elsewhere: emptyPlace && (() => standAt(emptyPlace)),
  }
}

// loaded only where it is needed: without its package, everything on Postgres still runs
async function serverAt({ url, redis }) {
  if (!redis) return openDatabase(url)
  const { openRedis } = await import('./redis.mjs')
  return openRedis(redis)
}
