// Measures the cost of retention: drains next to millions of finished jobs, with nothing to remove and while a day's worth of
// them is removed, in turns; then how fast they are removed. Embedded Postgres, durable commits, default settings.
// Usage: npm run bench:prune [-- --finished 5000000 --jobs 500000 --rounds 4 --json]
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect, defineJob } from 'holdfast'
import pg from 'pg'

const { values: flags } = parseArgs({
  options: {
    finished: { type: 'string', default: '5000000' },
    jobs: { type: 'string', default: '500000' },
    rounds: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
  },
})
const [finished, jobs, rounds] = [flags.finished, flags.jobs, flags.rounds].map(Number)
const day = 86_400_000
const days = 30
const noop = defineJob('noop', { run: () => undefined })
const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
const first = await connect({ embedded: dir, jobs: [noop], logLevel: 'error' })
const client = new pg.Client(first.url)
await client.connect()
const figures = {}

try {
  tell(`${finished} finished jobs of ${days} days`)
  await load()
  await drain({ keepMs: 3_650 * day })
  for (let round = 1; round <= rounds; round++) {
    tell(`round ${round} of ${rounds}`)
    // in turns, and each first in every other round: the later one meets larger tables and whatever else runs then
    const turns = [quietly, () => whileRemoving(round)]
    for (const turn of round % 2 === 1 ? turns : turns.toReversed()) await turn()
  }
  const hf = await connect({ url: first.url, logLevel: 'error', keepMs: (days - rounds - 1) * day })
  const startedMs = performance.now()
  const { removed } = await hf.prune()
  note('removed at once, jobs/s', removed / ((performance.now() - startedMs) / 1000))
  await hf.close()
  show()
} finally {
  await client.end()
  await first.close()
  await rm(dir, { recursive: true, force: true })
}

async function quietly() {
  note('drain with nothing to remove, jobs/s', (await drain({ keepMs: 3_650 * day })).rate)
}

async function whileRemoving(round) {
  const { rate, removed } = await drain({ keepMs: (days - round) * day })
  note('drain while a day is removed, jobs/s', rate)
  note('removed meanwhile, jobs/s', removed)
}

/** Jobs that ended evenly over the days, each with an input, an output and its events. */
async function load() {
  await client.query('set synchronous_commit = off')
  const slice = 250_000
  for (let done = 0; done < finished; done += slice)
    await client.query(
      `with made as (
        insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
        select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
          at, 3, 2, 'old', 'default', 'default', '{"document":"invoice-1001.txt"}'
        from (select now() - ($3 - n * $3::float8 / $4) * interval '1 day' as at from generate_series($1::int, $2::int - 1) as n) as one
        returning *
      ),
      given as (
        insert into holdfast.stage_output (job_id, stage, name, attempt, at, output) select id, 0, 'run', 1, submitted_at, '{"pages":3}' from made
      )
      insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
      select id, kind, tenant, submitted_at, 1, 0, 0, 0, false, 'succeeded' from made`,
      [done, Math.min(finished, done + slice), days, finished],
    )
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

async function drain(settings) {
  const hf = await connect({ url: first.url, jobs: [noop], logLevel: 'error', ...settings })
  for (let left = jobs; left > 0; left -= 5000)
    await hf.submitMany(
      noop,
      Array.from({ length: Math.min(5000, left) }, () => ({ input: null })),
    )
  await client.query('checkpoint')
  const before = await countOld()
  const startedMs = performance.now()
  const working = await hf.work()
  while ((await client.query('select from holdfast.ready union all select from holdfast.lease limit 1')).rowCount > 0)
    await new Promise((resolve) => setTimeout(resolve, 20))
  const seconds = (performance.now() - startedMs) / 1000
  await working.stop()
  await hf.close()
  return { rate: jobs / seconds, removed: (before - (await countOld())) / seconds }
}

async function countOld() {
  return (await client.query(`select count(*)::int as count from holdfast.job where kind = 'old'`)).rows[0].count
}

function note(name, value) {
  figures[name] ??= []
  figures[name].push(value)
}

function tell(text) {
  if (!flags.json) console.error(text)
}

function show() {
  const quiet = figures['drain with nothing to remove, jobs/s']
  // round by round: the speed of a machine changes over minutes
  figures['share of the drain that is left'] = figures['drain while a day is removed, jobs/s'].map(
    (rate, n) => rate / quiet[n],
  )
  const middle = Object.fromEntries(Object.entries(figures).map(([name, all]) => [name, medianOf(all)]))
  if (flags.json) return console.log(JSON.stringify({ figures, middle }, null, 2))
  for (const [name, all] of Object.entries(figures))
    console.log(`${name.padEnd(40)} ${shown(middle[name]).padStart(7)}   (${all.map(shown).join(', ')})`)
}

function medianOf(all) {
  const sorted = all.toSorted((a, b) => a - b)
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2
}

function shown(value) {
  return value < 10 ? value.toFixed(3) : String(Math.round(value))
}
