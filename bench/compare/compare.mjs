// Compares Holdfast at its defaults with its peers at their defaults and at their best, on one Postgres, interleaved.
// Usage: npm run bench [-- --quick --only drain,bulk --contenders holdfast,graphile-best --rounds 3 --jobs 100000 --json --write]
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { contenders } from './contenders.mjs'
import { installPeers } from './install.mjs'
import { machineNow } from './machine.mjs'
import { measures } from './measures.mjs'
import { makeProgress } from './progress.mjs'
import { textOf } from './report.mjs'
import { runAll } from './runner.mjs'
import { write } from './write.mjs'

const usage = `Usage: npm run bench -- [options]

  --quick               Small and short, to see whether it runs.
  --only <names>        Only these measures: ${measures.map(({ name }) => name).join(', ')}.
  --contenders <names>  Only these: ${contenders.map(({ id }) => id).join(', ')}.
  --rounds <number>     Rounds of each (default 3).
  --jobs <number>       Jobs of a drain or a bulk submit (default 100000).
  --rows <number>       Finished rows, and as many scheduled ones, of the measure "loaded" (default 1000000).
  --cap <seconds>       How long to wait for a recovery (default 75).
  --seconds <number>    How long the mixed load lasts (default 60).
  --url <text>          Postgres server to use; creates its own databases there. Default: a temporary embedded Postgres.
  --json                One JSON document instead of the table.
  --write               Write table, plot and figures to docs/benchmarks/.`

const flags = readFlags()
const scale = scaleOf(flags)
const chosen = {
  measures: chosenOf('only', flags.only, measures, ({ name }) => name),
  contenders: chosenOf('contenders', flags.contenders, contenders, ({ id }) => id),
}
const tell = (line) => process.stderr.write(`${line}\n`)
const leftOut = []
if (chosen.contenders.some(({ isOurs }) => !isOurs)) {
  const trouble = installPeers(tell)
  if (trouble) {
    leftOut.push(`every peer: the packages could not be installed (${trouble})`)
    chosen.contenders = chosen.contenders.filter(({ isOurs }) => isOurs)
  }
}

const ending = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ending.abort())
const before = machineNow()
const progress = makeProgress()
const outcome = await runAll({ ...chosen, scale, url: flags.url, signal: ending.signal, progress, leftOut })
progress.end()
const report = { ...outcome, scale, machine: { ...before, loadAfter: machineNow().load }, commit: commit() }
process.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report))
if (flags.write && ending.signal.aborted) tell('Nothing is written: it was interrupted.')
else if (flags.write) write(report, tell)
// fails only if nothing was measured; a peer may be left out
process.exit(Object.keys(report.figures).length === 0 ? 1 : 0)

function readFlags() {
  const text = { type: 'string' }
  const is = { type: 'boolean', default: false }
  try {
    return parseArgs({
      options: {
        quick: is,
        only: text,
        contenders: text,
        rounds: text,
        jobs: text,
        rows: text,
        cap: text,
        seconds: text,
        url: text,
        json: is,
        write: is,
        help: is,
      },
    }).values
  } catch (error) {
    return refuse(error.message)
  } finally {
    if (process.argv.includes('--help')) {
      console.log(usage)
      process.exit(0)
    }
  }
}

function scaleOf({ quick, rounds, jobs, rows, cap, seconds }) {
  const small = quick === true
  return {
    jobs: wholeOf('jobs', jobs, small ? 2_000 : 100_000),
    rounds: wholeOf('rounds', rounds, small ? 1 : 3),
    rows: wholeOf('rows', rows, small ? 10_000 : 1_000_000),
    recoveryCapMs: wholeOf('cap', cap, small ? 10 : 75) * 1000,
    mixedMs: wholeOf('seconds', seconds, small ? 3 : 60) * 1000,
    batch: 5_000,
    singleMs: small ? 500 : 3_000,
    samples: small ? 30 : 500,
    pickupCapMs: small ? 5_000 : 30_000,
    drainCapMs: small ? 5_000 : 30_000,
  }
}

function wholeOf(name, text, standard) {
  if (text === undefined) return standard
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  return refuse(`--${name} takes a whole number from 1, not ${JSON.stringify(text)}.`)
}

function chosenOf(flag, text, all, nameOf) {
  if (text === undefined) return all
  const names = text.split(',').map((name) => name.trim())
  const odd = names.find((name) => !all.some((one) => nameOf(one) === name))
  if (odd !== undefined) refuse(`--${flag} knows no "${odd}"; there are ${all.map(nameOf).join(', ')}.`)
  return all.filter((one) => names.includes(nameOf(one)))
}

function refuse(sentence) {
  console.error(`error: ${sentence}\n\n${usage}`)
  process.exit(2)
}

function commit() {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' })
  return stdout?.trim() || undefined
}
