// Measures this engine at its default settings on an embedded Postgres with durable commits: the cost of a no-op job.
// Usage: npm run bench [-- --jobs 100000 --rounds 3 --json]
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect, defineJob } from 'holdfast'
import pg from 'pg'
import { measureSweep } from './sweep.mjs'

const { values: flags } = parseArgs({
  options: {
    jobs: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
  },
})
const jobs = Number(flags.jobs)
const rounds = Number(flags.rounds)
const noop = defineJob('noop', { run: () => undefined })
let pickedUpMs = 0
const timed = defineJob('timed', {
  run: () => {
    pickedUpMs = performance.now()
  },
})

const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
const hf = await connect({ embedded: dir, jobs: [noop, timed], logLevel: 'error' })
const client = new pg.Client(hf.url)
await client.connect()
const figures = {}

try {
  for (let round = 1; round <= rounds; round++) {
    tell(`round ${round} of ${rounds}`)
    note('bulk submit, jobs/s', await bulkSubmit())
    note('drain, 1 process, jobs/s', await drain())
    note('single submits, 20 callers, jobs/s', await singleSubmits())
    await drain()
    for (const [name, value] of Object.entries(await pickup())) note(name, value)
  }
  tell(`loading ${flags.rows} finished and ${flags.rows} queued rows for the sweep`)
  for (const [name, value] of Object.entries(await measureSweep(client, Number(flags.rows)))) note(name, value)
  show()
} finally {
  await client.end()
  await hf.close()
  await rm(dir, { recursive: true, force: true })
}

async function bulkSubmit() {
  const batch = Array.from({ length: 5000 }, (_, index) => ({ input: { index } }))
  const startedMs = performance.now()
  for (let done = 0; done < jobs; done += batch.length) await hf.submitMany(noop, batch)
  return perSecond(jobs, startedMs)
}

/** Measures from starting the worker until the database has no jobs left. */
async function drain() {
  const { rows } = await client.query(
    'select (select count(*) from holdfast.ready)::int + (select count(*) from holdfast.running)::int as live',
  )
  const startedMs = performance.now()
  const working = await hf.work()
  while (
    (
      await client.query(
        'select from holdfast.ready union all select from holdfast.lease union all select from holdfast.waiting limit 1',
      )
    ).rowCount > 0
  )
    await new Promise((resolve) => setTimeout(resolve, 10))
  const rate = perSecond(rows[0].live, startedMs)
  await working.stop()
  return rate
}

async function singleSubmits() {
  const startedMs = performance.now()
  const untilMs = startedMs + 2000
  let submitted = 0
  const caller = async () => {
    while (performance.now() < untilMs) {
      await hf.submit(noop, { submitted })
      submitted += 1
    }
  }
  await Promise.all(Array.from({ length: 20 }, caller))
  return perSecond(submitted, startedMs)
}

/** Measures from the call of submit to the first line of the handler in an idle system. */
async function pickup() {
  const working = await hf.work()
  const waits = []
  for (let index = 0; index < 300; index++) {
    const startedMs = performance.now()
    const handle = await hf.submit(timed, null)
    await handle.result()
    waits.push(pickedUpMs - startedMs)
  }
  await working.stop()
  waits.sort((a, b) => a - b)
  const at = (share) => waits[Math.floor(waits.length * share)]
  return { 'pickup p50, ms': at(0.5), 'pickup p95, ms': at(0.95), 'pickup p99, ms': at(0.99) }
}

function perSecond(count, sinceMs) {
  return (count * 1000) / (performance.now() - sinceMs)
}

function note(name, value) {
  figures[name] ??= []
  figures[name].push(value)
}

function tell(line) {
  process.stderr.write(`${line}\n`)
}

function show() {
  const rows = Object.entries(figures).map(([name, values]) => {
    const sorted = values.toSorted((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)]
    const spread = (sorted.at(-1) - sorted[0]) / median
    return { name, median, spread }
  })
  if (flags.json) return console.log(JSON.stringify(rows, null, 2))
  for (const { name, median, spread } of rows) {
    const value = median >= 100 ? Math.round(median).toLocaleString('en') : median.toFixed(2)
    console.log(
      `${name.padEnd(44)} ${value.padStart(10)}   spread ${Math.round(spread * 100)} %${spread > 0.2 ? '  (noisy)' : ''}`,
    )
  }
}
