// Measures the event log: how fast a group reads, how fast jobs are drained, and whether slow webhook receivers
// delay a fast one. Embedded Postgres, durable commits, default settings.
// Usage: npm run bench:events [-- --jobs 50000 --events 200000 --slow 200 --rounds 3 --json]
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect, defineJob } from 'holdfast'
import pg from 'pg'

const { values: flags } = parseArgs({
  options: {
    jobs: { type: 'string', default: '50000' },
    events: { type: 'string', default: '200000' },
    slow: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
})
const [jobs, events, slow, rounds] = [flags.jobs, flags.events, flags.slow, flags.rounds].map(Number)
const noop = defineJob('noop', { run: () => undefined })
const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
const hf = await connect({ embedded: dir, jobs: [noop], logLevel: 'error', webhookAllow: ['127.0.0.1'] })
const client = new pg.Client(hf.url)
await client.connect()
const figures = {}

try {
  for (let round = 1; round <= rounds; round++) {
    tell(`round ${round} of ${rounds}`)
    await fill(jobs)
    note('drain, jobs/s', await drain())
    note('a group reads, events/s', await readAll())
  }
  tell(`${slow} receivers of 2 s next to a fast one`)
  for (const [name, value] of Object.entries(await besideSlow())) note(name, value)
  show()
} finally {
  await client.end()
  await hf.close()
  await rm(dir, { recursive: true, force: true })
}

async function fill(count) {
  for (let left = count; left > 0; left -= 5000)
    await hf.submitMany(
      noop,
      Array.from({ length: Math.min(5000, left) }, () => ({ input: null })),
    )
}

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
  const rate = rows[0].live / ((performance.now() - startedMs) / 1000)
  await working.stop()
  return rate
}

async function readAll() {
  const { rows } = await client.query('select count(*)::int as count from holdfast.event')
  if (rows[0].count < events)
    await client.query(
      `insert into holdfast.event_log (type, state, job_id, kind, tenant)
       select 'job.finished', 'succeeded', gen_random_uuid(), 'noop', 'default' from generate_series(1, $1)`,
      [events - rows[0].count],
    )
  const group = `bench-${performance.now()}`
  let [count, startedMs] = [0, 0]
  const all = deferred()
  const subscription = await hf.events.subscribe(group, { from: 'beginning' }, () => {
    if (count++ === 0) startedMs = performance.now()
    if (count === events) all.resolve()
  })
  await all.promise
  const rate = count / ((performance.now() - startedMs) / 1000)
  await subscription.stop()
  await hf.events.forget(group)
  return rate
}

function deferred() {
  let resolve
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** Measures from an event to its arrival at a fast receiver, while many slow ones are overloaded. */
async function besideSlow() {
  const arrivedMs = []
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      if (request.url !== '/fast') return void setTimeout(() => response.end(), 2000)
      response.end()
      arrivedMs.push(Date.now() - Date.parse(JSON.parse(Buffer.concat(parts)).time))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = `http://127.0.0.1:${server.address().port}`
  const types = ['job.submitted']
  for (let index = 0; index < slow; index++)
    await hf.webhooks.create({ url: `${at}/slow/${index}`, types, tenant: 'slow' })
  await hf.webhooks.create({ url: `${at}/fast`, types, tenant: 'fast' })
  const delivering = await hf.deliver()
  await hf.submitMany(
    noop,
    Array.from({ length: 20 }, () => ({ input: null, tenant: 'slow' })),
  )
  const wanted = 200
  for (let index = 0; index < wanted; index++) {
    await hf.submit(noop, null, { tenant: 'fast' })
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  while (arrivedMs.length < wanted) await new Promise((resolve) => setTimeout(resolve, 10))
  await delivering.stop()
  server.closeAllConnections()
  server.close()
  const sorted = arrivedMs.toSorted((a, b) => a - b)
  const at95 = sorted[Math.floor(wanted * 0.95)]
  return {
    'fast webhook, p50 ms': sorted[wanted / 2],
    'fast webhook, p95 ms': at95,
    'fast webhook, max ms': sorted.at(-1),
  }
}

function note(name, value) {
  figures[name] = [...(figures[name] ?? []), value]
  return value
}

function tell(line) {
  if (!flags.json) console.error(line)
}

function show() {
  const medians = Object.fromEntries(
    Object.entries(figures).map(([name, all]) => [name, all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]]),
  )
  if (flags.json) return console.log(JSON.stringify({ medians, figures }))
  const width = Math.max(...Object.keys(medians).map((name) => name.length))
  for (const [name, median] of Object.entries(medians)) {
    const text = median < 10 ? median.toFixed(2) : Math.round(median).toLocaleString('en')
    console.log(`${name.padEnd(width)}  ${text.padStart(9)}`)
  }
}
