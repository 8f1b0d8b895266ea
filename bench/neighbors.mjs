// Measures what a neighbor notices of an attack. Each attack is a file in bench/neighbors/ and gets a database and a server of its own. A neighbor's p99 is taken
// quiet and under attack in the same run; more than twice the quiet figure, a failed request or a server that ended is a failure. Everything is on loopback.
// Usage: npm run bench:neighbors [-- --only kinds,big-bodies --seconds 5 --rounds 2 --json]
import { readdir } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { startAttacker } from './neighbors/support/attacker.mjs'
import { openNeighbor } from './neighbors/support/neighbor.mjs'
import { openGround } from './neighbors/support/server.mjs'

const most = 2
const folder = new URL('./neighbors/', import.meta.url)
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
})
const [seconds, rounds] = [flags.seconds, flags.rounds].map(Number)
const files = (await readdir(folder)).filter((name) => name.endsWith('.mjs')).map((name) => name.slice(0, -4))
const names = flags.only?.split(',') ?? files
const unknown = names.find((name) => !files.includes(name))
if (unknown) throw new Error(`There is no attack ${unknown}; there are ${files.join(', ')}.`)

if (loadavg()[0] > availableParallelism() / 2)
  tell(`This machine is busy (load ${loadavg()[0].toFixed(1)}): the figures say little. Run this on an idle one.`)
const ground = await openGround()
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
  await ground.close()
}
if (flags.json) console.log(JSON.stringify({ seconds, rounds, most, results }, null, 2))
else for (const line of tableOf(results)) console.log(line)
if (results.some(({ isGood }) => !isGood)) process.exitCode = 1

/** One attack on a fresh server: the same measures quiet and under attack. */
async function measure(name) {
  const { measures, leadMs = 2_000, surroundings, prepare } = await import(new URL(`${name}.mjs`, folder))
  const around = await surroundings?.()
  const server = await ground.serve(around?.env)
  const neighbor = await openNeighbor(server, measures)
  try {
    await prepare?.(server)
    await neighbor.measure(1_500) // compiles what is hot, and fills pools
    const quiet = await neighbor.measure(seconds * 1000)
    const attacker = startAttacker(name, server)
    await attacker.underWay
    await new Promise((resolve) => setTimeout(resolve, leadMs))
    const attacked = await neighbor.measure(seconds * 1000)
    await attacker.stop()
    return { quiet, attacked, hasEnded: server.hasEnded() }
  } finally {
    await neighbor.close()
    await server.stop()
    await around?.stop()
  }
}

function judged(attack, samples) {
  return Object.keys(samples[0].quiet).map((what) => {
    const [quiet, attacked] = ['quiet', 'attacked'].map((when) => samples.flatMap((one) => one[when][what]))
    const [quietMs, attackedMs] = [p99(quiet), p99(attacked)]
    const failed = attacked.filter((ms) => ms === Number.POSITIVE_INFINITY).length
    const hasEnded = samples.some((one) => one.hasEnded)
    const ratio = attackedMs / quietMs
    // a measure that fails without an attack says nothing: the ratio is then no number, and no pass
    const isGood = ratio <= most && failed === 0 && !hasEnded
    return { attack, what, quietMs, attackedMs, ratio, samples: attacked.length, failed, hasEnded, isGood }
  })
}

function p99(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))]
}

function tableOf(rows) {
  const heads = ['attack', 'neighbor', 'quiet p99', 'attacked p99', 'ratio', '', '']
  const cells = rows.map(({ attack, what, quietMs, attackedMs, ratio, failed, hasEnded, isGood }) => [
    attack,
    what,
    length(quietMs),
    length(attackedMs),
    Number.isFinite(ratio) ? ratio.toFixed(1) : '∞',
    isGood ? 'pass' : 'FAIL',
    [failed > 0 && `${failed} requests failed`, hasEnded && 'the server ended'].filter(Boolean).join(', '),
  ])
  const widths = heads.map((head, index) => Math.max(head.length, ...cells.map((row) => row[index].length)))
  const line = (row) =>
    row
      .map((cell, index) => (index >= 2 && index <= 4 ? cell.padStart(widths[index]) : cell.padEnd(widths[index])))
      .join('  ')
      .trimEnd()
  return [heads, ...cells].map(line)
}

function length(ms) {
  if (!Number.isFinite(ms)) return 'failed'
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}

function tell(line) {
  if (process.stderr.isTTY || !flags.json) process.stderr.write(`${line}\n`)
}
