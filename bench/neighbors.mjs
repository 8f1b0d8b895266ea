// Measures what a neighbor notices of an attack. Each attack is a file in bench/neighbors/ and gets its own database and server. A neighbor's p99 is measured
// three times in the same run: undisturbed, while the attack hits a server that only refuses (the floor), and under attack. More than twice the quiet figure,
// a failed request or a server that ended is a failure. Attackers stand in for other machines, so they run at the lowest priority. Everything is on loopback.
// Usage: npm run bench:neighbors [-- --only kinds,big-bodies --seconds 10 --rounds 1 --json --profile <folder>]
import { readdir } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startAttacker } from './neighbors/support/attacker.mjs'
import { openNeighbor } from './neighbors/support/neighbor.mjs'
import { startRefusingServer } from './neighbors/support/refusing-server.mjs'
import { judged, most, tableOf } from './neighbors/support/report.mjs'
import { openTestServers } from './neighbors/support/server.mjs'

/** How long a server is used before anything is measured: until hot code is compiled and pools are filled. */
const warmUpMs = 4_000
const folder = new URL('./neighbors/', import.meta.url)
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    profile: { type: 'string' },
  },
})
const [seconds, rounds] = [flags.seconds, flags.rounds].map(Number)
const files = (await readdir(folder)).filter((name) => name.endsWith('.mjs')).map((name) => name.slice(0, -4))
const names = flags.only?.split(',') ?? files
const unknown = names.find((name) => !files.includes(name))
if (unknown) throw new Error(`There is no attack ${unknown}; there are ${files.join(', ')}.`)

if (loadavg()[0] > availableParallelism() / 2)
  tell(`This machine is busy (load ${loadavg()[0].toFixed(1)}): the figures are not reliable. Run this on an idle one.`)
const servers = await openTestServers({ profileDir: flags.profile })
const results = []
try {
  for (const name of names) {
    const samples = []
    for (let round = 1; round <= rounds; round++) {
      tell(`${name}, round ${round} of ${rounds}`)
      samples.push(await measure(name))
    }
    results.push(...judged(name, samples))
  }
} finally {
  await servers.close()
}
if (flags.json) console.log(JSON.stringify({ seconds, rounds, most, results }, null, 2))
else for (const line of tableOf(results)) console.log(line)
if (results.some(({ isGood }) => !isGood)) process.exitCode = 1

/** One attack on a fresh server: the same measures without attack, while it hits a server that only refuses, and under attack. */
async function measure(name) {
  const { measures, leadMs = 2_000, openEnvironment, prepare } = await import(new URL(`${name}.mjs`, folder))
  const environment = await openEnvironment?.()
  const server = await servers.serve(environment?.env)
  const neighbor = await openNeighbor(server, measures)
  try {
    await prepare?.(server)
    await neighbor.measure(warmUpMs)
    const quiet = await neighbor.measure(seconds * 1000)
    const refusing = await startRefusingServer()
    const { taken: floor } = await measureUnder(name, { ...server, url: refusing.url }, neighbor, leadMs)
    await refusing.stop()
    const { taken: attacked, perSecond } = await measureUnder(name, server, neighbor, leadMs)
    return { quiet, floor, attacked, perSecond, hasEnded: server.hasEnded() }
  } finally {
    await neighbor.close()
    await server.stop()
    await environment?.stop()
  }
}

/** The measures while an attack hits `target`, and how many requests per second the attack achieved. */
async function measureUnder(name, target, neighbor, leadMs) {
  const attacker = startAttacker(name, target)
  await attacker.underWay
  const sinceMs = performance.now()
  await pause(leadMs)
  const taken = await neighbor.measure(seconds * 1000)
  const lastedMs = performance.now() - sinceMs
  return { taken, perSecond: ((await attacker.stop()) * 1000) / lastedMs }
}

function tell(line) {
  if (process.stderr.isTTY || !flags.json) process.stderr.write(`${line}\n`)
}
