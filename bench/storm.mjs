// The long test of fan-outs: many rounds of a 1,000-item fan-out while workers are killed at random every second.
// Usage: npm run storm [-- --rounds 50 --items 1000 --minutes 60]. Exits with 1 if anything was lost, doubled or stuck.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect } from 'holdfast'
import { stormRound } from './storm-round.mjs'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    items: { type: 'string', default: '1000' },
    minutes: { type: 'string', default: '60' },
  },
})
const rounds = Number(flags.rounds)
const untilMs = performance.now() + Number(flags.minutes) * 60_000
const dir = await mkdtemp(join(tmpdir(), 'holdfast-storm-'))
const hf = await connect({ embedded: dir, logLevel: 'error' })
const bad = []
let played = 0

try {
  while (played < rounds && performance.now() < untilMs) {
    played += 1
    const { ms, kills, revived, wrongs } = await stormRound({ url: hf.url, items: Number(flags.items) })
    console.log(
      `round ${played}: ${ms} ms, ${kills} workers killed, ${revived} revivals${wrongs.length ? `, WRONG: ${wrongs.join('; ')}` : ', all held'}`,
    )
    if (wrongs.length > 0) bad.push(played)
  }
} finally {
  await hf.close()
  await rm(dir, { recursive: true, force: true })
}
console.log(`${played - bad.length} of ${played} rounds held: one join, no item lost, none settled twice, audit clean`)
process.exitCode = bad.length > 0 ? 1 : 0
