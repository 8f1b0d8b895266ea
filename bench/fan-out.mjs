// Measures fan-outs at the default settings on an embedded Postgres with durable commits: how much more an item costs than an
// independent job, how fast items are added and with how much memory, and how soon a join starts after the last settle.
// Usage: npm run bench:fan-out [-- --items 100000 --rounds 3 --joins 50 --json]
import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect, defineJob } from 'holdfast'
import pg from 'pg'

const { values: flags } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    joins: { type: 'string', default: '50' },
    json: { type: 'boolean', default: false },
  },
})
const items = Number(flags.items)
const rounds = Number(flags.rounds)

const noop = defineJob('noop', { run: () => undefined })
let highestBytes = 0
const wide = defineJob('wide', {
  // parents and items have separate queues, so that adding and running can be measured separately
  queue: 'parents',
  stages: [{ name: 'all', fanOut: () => counted(items), each: defineJob('item', { run: () => undefined }) }],
})
const item = wide.stages[0].each
let lastSettledMs = 0
const joined = []
const quick = defineJob('quick', {
  stages: [
    {
      name: 'all',
      fanOut: () => [1, 2, 3, 4],
      each: () => {
        lastSettledMs = performance.now()
      },
      join: () => void joined.push(performance.now() - lastSettledMs),
    },
  ],
})

function* counted(count) {
  for (let n = 0; n < count; n++) {
    if (n % 1_000 === 0) highestBytes = Math.max(highestBytes, process.memoryUsage().heapUsed)
    yield n
  }
}

const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
const hf = await connect({ embedded: dir, jobs: [noop, wide, item, quick], logLevel: 'error', jobTimeoutMs: 3_600_000 })
const client = new pg.Client(hf.url)
await client.connect()
const figures = {}

try {
  for (let round = 1; round <= rounds; round++) {
    tell(`round ${round} of ${rounds}`)
    const alone = await jobsAlone()
    const { addSeconds, heapMb, perSecond } = await jobsUnderOne()
    note('independent jobs, jobs/s', alone)
    note('items under one parent, items/s', perSecond)
    note('items / independent jobs', perSecond / alone)
    note(`adding ${items} items, s`, addSeconds)
    note('heap while adding, MB above start', heapMb)
  }
  note('join after the last handler, median ms', await joinLatency())
  note('load of the machine', loadavg()[0])
  show()
} finally {
  await client.end()
  await hf.close()
  await rm(dir, { recursive: true, force: true })
}

async function jobsAlone() {
  const batch = Array.from({ length: 5_000 }, (_, index) => ({ input: index }))
  for (let done = 0; done < items; done += batch.length) await hf.submitMany(noop, batch)
  return drain('noop')
}

async function jobsUnderOne() {
  await hf.pauseQueue('default')
  globalThis.gc?.()
  const beforeBytes = process.memoryUsage().heapUsed
  highestBytes = beforeBytes
  const startedMs = performance.now()
  const worker = await hf.work()
  const { id } = await hf.submit(wide, null)
  await until(async () => (await hf.get(id))?.state === 'waiting')
  const addSeconds = (performance.now() - startedMs) / 1000
  await worker.stop()
  await hf.resumeQueue('default')
  const perSecond = await drain('item')
  return { addSeconds, heapMb: (highestBytes - beforeBytes) / 1e6, perSecond }
}

/** Measures from starting the worker until the database has no jobs of this kind left. */
async function drain(kind) {
  await client.query('vacuum analyze holdfast.ready')
  const startedMs = performance.now()
  const worker = await hf.work()
  await until(
    async () =>
      (
        await client.query(
          'select from holdfast.ready where kind = $1 union all select from holdfast.lease where kind = $1 limit 1',
          [kind],
        )
      ).rowCount === 0,
  )
  const rate = items / ((performance.now() - startedMs) / 1000)
  await until(
    async () =>
      (
        await client.query(
          'select from holdfast.ready union all select from holdfast.lease union all select from holdfast.waiting limit 1',
        )
      ).rowCount === 0,
  )
  await worker.stop()
  return rate
}

async function joinLatency() {
  const worker = await hf.work()
  for (let n = 0; n < Number(flags.joins); n++) await (await hf.submit(quick, null)).result()
  await worker.stop()
  return median(joined)
}

async function until(ask) {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 10))
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function note(name, value) {
  figures[name] = [...(figures[name] ?? []), value]
}

function tell(line) {
  if (!flags.json) console.log(line)
}

function show() {
  const medians = Object.fromEntries(Object.entries(figures).map(([name, all]) => [name, median(all)]))
  if (flags.json) console.log(JSON.stringify({ items, rounds, figures, medians }, null, 2))
  else
    for (const [name, value] of Object.entries(medians))
      console.log(`${name.padEnd(42)} ${value < 10 ? value.toFixed(2) : Math.round(value)}`)
}
