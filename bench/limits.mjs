// Measures what limits and fairness cost, each beside a drain without them: runs are interleaved, so that a busy machine slows both alike.
// Usage: npm run bench:limits [-- --jobs 100000 --keys 1000 --backlog 1000000 --rounds 3 --json]
// With --before <folder of another build>, the drain without limits is compared with that build's.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import * as current from 'holdfast'
import pg from 'pg'

const { values: flags } = parseArgs({
  options: {
    jobs: { type: 'string', default: '100000' },
    keys: { type: 'string', default: '1000' },
    backlog: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    before: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const jobs = Number(flags.jobs)
const keys = Number(flags.keys)
const figures = {}
const engines = [await open('now', current)]
if (flags.before)
  engines.push(await open('before', await import(pathToFileURL(join(flags.before, 'dist/index.js')).href)))
const [now, before] = engines

try {
  for (let round = 1; round <= Number(flags.rounds); round++) {
    process.stderr.write(`round ${round} of ${flags.rounds}\n`)
    if (before) note('drain without limits, the other build, jobs/s', await drain(before, before.plain))
    note('drain without limits, jobs/s', await drain(now, now.plain))
    note(
      `drain with ${keys} keys of limit 5, jobs/s`,
      await drain(now, now.keyed, (n) => ({ input: { key: n % keys } })),
    )
    note('drain of a fair queue with one tenant, jobs/s', await drain(now, now.fair))
  }
  for (const [name, value] of Object.entries(await neighbors(now))) note(name, value)
  show()
} finally {
  for (const { hf, client, dir } of engines) {
    await client.end()
    await hf.close()
    await rm(dir, { recursive: true, force: true })
  }
}

async function open(name, { connect, defineJob }) {
  const dir = await mkdtemp(join(tmpdir(), `holdfast-limits-${name}-`))
  const run = () => undefined
  const waits = []
  const plain = defineJob('plain', { queue: 'plain', run })
  const keyed =
    name === 'now' ? defineJob('keyed', { queue: 'keyed', limit: { key: 'key', concurrency: 5 }, run }) : undefined
  const fair = defineJob('fair', {
    queue: 'fair',
    run: ({ job }) => {
      if (job.tenant === 'small') waits.push(Date.now() - job.submittedAt.getTime())
    },
  })
  const hf = await connect({ embedded: dir, jobs: [plain, keyed, fair].filter(Boolean), logLevel: 'error' })
  if (name === 'now') await hf.limits.set({ queue: 'fair' }, { fair: true })
  const client = new pg.Client(hf.url)
  await client.connect()
  return { hf, client, dir, plain, keyed, fair, waits }
}

/** Submits the jobs, then measures from starting a worker until none is left. */
async function drain({ hf, client }, kind, make = () => ({ input: null })) {
  await fill(hf, kind, jobs, make)
  const startedMs = performance.now()
  const working = await hf.work()
  const live = 'select from holdfast.ready union all select from holdfast.lease limit 1'
  while ((await client.query(live)).rowCount > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  const rate = (jobs * 1000) / (performance.now() - startedMs)
  await working.stop()
  return rate
}

async function fill(hf, kind, count, make) {
  for (let done = 0; done < count; done += 5000)
    await hf.submitMany(
      kind,
      Array.from({ length: Math.min(5000, count - done) }, (_, n) => make(done + n)),
    )
}

/** How long ten jobs of a small tenant wait, one after the other: in an idle system, and behind the backlog of a large one. */
async function neighbors({ hf, fair, waits }) {
  const ask = async () => {
    waits.length = 0
    for (let n = 0; n < 10; n++) await (await hf.submit(fair, null, { tenant: 'small' })).result()
    return Math.max(...waits)
  }
  const idle = await hf.work()
  const idleMs = await ask()
  await idle.stop()
  await fill(hf, fair, Number(flags.backlog), () => ({ input: null, tenant: 'large' }))
  const busy = await hf.work()
  const busyMs = await ask()
  await busy.stop()
  return {
    'longest wait of a small tenant, idle, ms': idleMs,
    [`the same behind ${flags.backlog} jobs of another, ms`]: busyMs,
  }
}

function note(name, value) {
  figures[name] ??= []
  figures[name].push(value)
}

function show() {
  if (flags.json) return console.log(JSON.stringify(figures, null, 2))
  for (const [name, values] of Object.entries(figures))
    console.log(`${name.padEnd(60)} ${values.map((value) => Math.round(value).toLocaleString('en')).join('  ')}`)
}
