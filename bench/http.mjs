// Measures the HTTP server: submits over 50 connections compared with the library's own, listeners, pages and `why` next to a million rows.
// Embedded Postgres, durable commits, default settings.
// Usage: npm run bench:http [-- --seconds 5 --connections 50 --rounds 3 --listeners 1000 --rows 1000000 --json]
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { connect, defineJob } from 'holdfast'
import { createClient } from 'holdfast/client'
import pg from 'pg'
import { claimable, finished } from './rows.mjs'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '3' },
    listeners: { type: 'string', default: '1000' },
    rows: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
  },
})
const [seconds, connections, rounds, listeners, rows] = [
  flags.seconds,
  flags.connections,
  flags.rounds,
  flags.listeners,
  flags.rows,
].map(Number)
const noop = defineJob('noop', { run: () => undefined })
const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
const hf = await connect({ embedded: dir, jobs: [noop], logLevel: 'error' })
const sql = new pg.Client(hf.url)
await sql.connect()
const { key } = await hf.keys.create({ name: 'bench', scopes: ['admin'], tenant: null })
const child = fork(new URL('./http-server.mjs', import.meta.url), {
  env: { ...process.env, BENCH_URL: hf.url },
  execArgv: ['--expose-gc'],
})
const [{ url }] = await once(child, 'message')
const figures = {}

try {
  // first, while the heap of the server is small: later it would hide them
  tell(`${listeners} listeners`)
  note('memory per 1,000 listeners, MB', await byListeners())
  for (let round = 1; round <= rounds; round++) {
    tell(`submits, round ${round} of ${rounds}`)
    const library = note('library, single submits/s', await bySubmit())
    await empty()
    const http = note('HTTP, single submits/s', await byHttp())
    await empty()
    note('HTTP / library', http / library)
  }
  tell(`${rows} finished and as many waiting rows`)
  await sql.query(finished(rows))
  await sql.query(claimable(rows))
  await sql.query('analyze holdfast.job, holdfast.ready, holdfast.outcome')
  await byReads()
  show()
} finally {
  child.send('stop')
  await once(child, 'exit')
  await sql.end()
  await hf.close()
  await rm(dir, { recursive: true, force: true })
}

async function bySubmit() {
  let count = 0
  const untilMs = performance.now() + seconds * 1000
  const sinceMs = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < untilMs) {
        await hf.submit(noop, { name: 'you' })
        count += 1
      }
    }),
  )
  return (count * 1000) / (performance.now() - sinceMs)
}

async function byHttp() {
  const { hostname: host, port } = new URL(url)
  const body = JSON.stringify({ kind: 'noop', input: { name: 'you' } })
  const task = JSON.stringify({ host, port: Number(port), path: '/v1/jobs', key, body, connections, seconds })
  const { stdout } = await promisify(execFile)(process.execPath, [
    new URL('./http-load.mjs', import.meta.url).pathname,
    task,
  ])
  const { perSecond, failed } = JSON.parse(stdout)
  if (failed > 0) throw new Error(`${failed} requests failed.`)
  return perSecond
}

async function empty() {
  await sql.query('truncate holdfast.job, holdfast.ready, holdfast.lease, holdfast.job_payload, holdfast.event_log')
  await sql.query('checkpoint')
}

async function memory() {
  child.send('memory')
  const [{ rss }] = await once(child, 'message')
  return rss / 1024 / 1024
}

async function byListeners() {
  const before = await memory()
  const sockets = []
  for (let index = 0; index < listeners; index++)
    sockets.push(
      await new Promise((resolve, reject) => {
        const request = get(
          `${url}/v1/events/stream`,
          { agent: false, headers: { authorization: `Bearer ${key}` } },
          () => resolve(request),
        )
        request.on('error', reject)
      }),
    )
  const after = await memory()
  for (const socket of sockets) socket.destroy()
  return ((after - before) * 1000) / listeners
}

async function byReads() {
  const client = createClient({ url, key })
  const [middle] = (
    await sql.query('select job_id as id from holdfast.outcome order by job_id offset $1 limit 1', [
      Math.floor(rows / 2),
    ])
  ).rows
  const [waiting] = (await sql.query('select job_id as id from holdfast.ready order by job_id limit 1')).rows
  let cursor
  await timed('first page, ms', async () => {
    cursor = (await client.listJobs({ query: { limit: 50 } })).data.next
  })
  for (let page = 0; page < 200 && cursor !== null; page++)
    cursor = (await client.listJobs({ query: { limit: 1000, cursor } })).data.next
  await timed('page after 200,000 jobs, ms', () =>
    client.listJobs({ query: { limit: 50, ...(cursor ? { cursor } : {}) } }),
  )
  await timed('page of a rare kind, ms', () => client.listJobs({ query: { kind: 'rare' } }))
  await timed('page of failed ones, ms', () => client.listJobs({ query: { state: 'failed' } }))
  if (client.whyJob) {
    await timed('why of a finished job, ms', () => client.whyJob({ path: { id: middle.id } }))
    await timed('why of a waiting job, ms', () => client.whyJob({ path: { id: waiting.id } }))
  }
}

/** p50 and p95 of a hundred calls, after ten to warm up. */
async function timed(name, ask) {
  const tookMs = []
  for (let turn = 0; turn < 110; turn++) {
    const sinceMs = performance.now()
    await ask()
    if (turn >= 10) tookMs.push(performance.now() - sinceMs)
  }
  tookMs.sort((a, b) => a - b)
  note(`${name} (p50)`, tookMs[50])
  note(`${name} (p95)`, tookMs[95])
}

function note(name, value) {
  figures[name] = [...(figures[name] ?? []), value]
  tell(`  ${name}: ${rounded(value)}`)
  return value
}

function show() {
  const medians = Object.fromEntries(
    Object.entries(figures).map(([name, values]) => [
      name,
      values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)],
    ]),
  )
  if (flags.json) return console.log(JSON.stringify(medians, null, 2))
  const width = Math.max(...Object.keys(medians).map((name) => name.length))
  for (const [name, value] of Object.entries(medians))
    console.log(`${name.padEnd(width)}  ${rounded(value).padStart(10)}`)
}

function rounded(value) {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}

function tell(line) {
  if (process.stderr.isTTY || !flags.json) process.stderr.write(`${line}\n`)
}
