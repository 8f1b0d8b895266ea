// Runs everything: round by round, and in each round every contender in turn, so that a machine that becomes slower or faster
// does so for all of them.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { adapterOf } from './contenders.mjs'
import { versionOf } from './install.mjs'
import { ownVersion } from './machine.mjs'
import { figures as allFigures } from './measures.mjs'
import { startServer } from './postgres.mjs'
import { summary } from './statistics.mjs'

const file = fileURLToPath(new URL('run.mjs', import.meta.url))
const longestRunMs = 600_000

/** All measures of all contenders: for each figure its rounds, median and spread, and what was left out. */
export async function runAll({ measures, contenders, scale, url, signal, progress, leftOut }) {
  const postgres = await startServer(url)
  const redis = await startRedises(contenders, leftOut)
  const present = contenders.filter((contender) => !contender.redis || redis.servers[contender.redis])
  const databases = makeDatabases(postgres, redis.servers)
  const values = {}
  const finished = new Set()
  try {
    const plan = planOf({ measures, contenders: present, rounds: scale.rounds })
    for (const [done, run] of plan.entries()) {
      if (signal.aborted) break
      const { measure, contender, round } = run
      const key = `${measure.name} of ${contender.id}`
      progress.at({
        done,
        total: plan.length,
        measure: measure.name,
        round,
        rounds: scale.rounds,
        title: contender.title,
      })
      if (finished.has(key)) continue
      const { figures, failed } = await runOne(databases, { measure, contender, scale, signal })
      if (failed && !signal.aborted) {
        finished.add(key)
        // some of the rounds would be mistaken for all of them
        for (const name of Object.keys(measure.figures)) delete values[name]?.[contender.id]
        leftOut.push(`${measure.name} of ${contender.title}: ${failed}`)
        progress.note(`left out: ${leftOut.at(-1)}`)
      }
      for (const [name, value] of Object.entries(figures ?? {})) {
        values[name] ??= {}
        values[name][contender.id] ??= []
        values[name][contender.id].push(value)
        if (measure.isOverAtCap && typeof value === 'object') finished.add(key)
      }
    }
    if (signal.aborted) leftOut.push('the rest: it was interrupted')
    const about = await postgres.about()
    return {
      figures: summarized(values),
      contenders: present.map(({ id, title, isBest, redis: mode, isOurs }) => ({
        id,
        title,
        isBest,
        isOurs,
        redis: mode,
      })),
      leftOut,
      versions: versions({ postgres: about.version, redis: redis.version }),
      postgres: about,
    }
  } finally {
    await databases.stop()
    await redis.stop()
    await postgres.stop()
  }
}

/** Each round begins with another contender, so that none always comes first. */
function planOf({ measures, contenders, rounds }) {
  return measures.flatMap((measure) => {
    const taking = contenders.filter((contender) => measure.takesPart?.(contender) ?? true)
    return Array.from({ length: rounds }, (_, index) => index).flatMap((index) =>
      taking.map((_, turn) => ({ measure, round: index + 1, contender: taking[(turn + index) % taking.length] })),
    )
  })
}

/** Databases for runs: each is a copy of one that the contender's schema was installed in once. */
function makeDatabases(postgres, redisServers) {
  const templates = new Map()
  async function templateOf(contender, wantsLatency) {
    const key = `${contender.id} ${wantsLatency}`
    if (!templates.has(key)) {
      const name = await postgres.create()
      const adapter = await adapterOf(contender)
      await adapter.install({ url: postgres.urlOf(name) }, { isBest: contender.isBest, wantsLatency })
      templates.set(key, name)
    }
    return templates.get(key)
  }
  return {
    async lend({ contender, measure }) {
      if (contender.redis) {
        const server = redisServers[contender.redis]
        await server.empty()
        return { database: { redis: server.address }, takeBack: server.empty }
      }
      const template = await templateOf(contender, measure.wantsLatency === true)
      const count = measure.needsEmptyDatabase ? 2 : 1
      const names = []
      for (let index = 0; index < count; index++) names.push(await postgres.create(template))
      const [database, emptyDatabase] = names.map((name) => ({ url: postgres.urlOf(name) }))
      const takeBack = async () => {
        for (const name of names) await postgres.drop(name)
      }
      return { database, emptyDatabase, takeBack }
    },
    stop: async () => {
      for (const name of templates.values()) await postgres.drop(name).catch(() => {})
    },
  }
}

async function runOne(databases, { measure, contender, scale, signal }) {
  try {
    const { takeBack, ...lent } = await databases.lend({ contender, measure })
    try {
      return await inProcess({ contender, measure: measure.name, scale, ...lent }, signal)
    } finally {
      await takeBack()
    }
  } catch (error) {
    return { failed: String(error?.message ?? error) }
  }
}

async function inProcess(order, signal) {
  const child = fork(file, [JSON.stringify(order)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  let answer = { failed: 'its process ended without an answer' }
  child.on('message', (message) => {
    answer = message
  })
  const end = () => child.kill('SIGKILL')
  const timer = setTimeout(() => {
    answer = { failed: `it took longer than ${longestRunMs / 60_000} minutes` }
    end()
  }, longestRunMs)
  signal.addEventListener('abort', end)
  await exited
  signal.removeEventListener('abort', end)
  clearTimeout(timer)
  return answer
}

async function startRedises(contenders, leftOut) {
  const modes = [...new Set(contenders.map((contender) => contender.redis).filter(Boolean))]
  const none = { servers: {}, version: undefined, stop: async () => {} }
  if (modes.length === 0) return none
  const { redisVersion, startRedis } = await import('./redis.mjs')
  const version = redisVersion()
  if (!version) {
    leftOut.push('BullMQ on Redis: there is no redis-server on the path')
    return none
  }
  const servers = {}
  for (const mode of modes)
    await startRedis(mode).then(
      (server) => {
        servers[mode] = server
      },
      ({ message }) => leftOut.push(`BullMQ on Redis, ${mode}: ${message}`),
    )
  return { servers, version, stop: () => Promise.all(Object.values(servers).map((server) => server.stop())) }
}

function summarized(values) {
  return Object.fromEntries(
    Object.keys(allFigures)
      .filter((name) => values[name])
      .map((name) => [
        name,
        Object.fromEntries(Object.entries(values[name]).map(([id, rounds]) => [id, summary(rounds)])),
      ]),
  )
}

function versions(servers) {
  const peers = ['graphile-worker', 'pg-boss', 'bullmq'].map((name) => [name, versionOf(name)])
  return { holdfast: ownVersion(), ...Object.fromEntries(peers), ...servers }
}
