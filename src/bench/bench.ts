import { availableParallelism, cpus, loadavg } from 'node:os'
import pg from 'pg'
import { version } from '../config/version.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { defineJob } from '../job/define.ts'
import { connectionOptions } from '../postgres/connection.ts'
import { runOnce } from '../postgres/run-once.ts'
import { runnerIn } from '../postgres/store.ts'
import { hasLiveJobs, serverFacts } from './test-database.sql.ts'
import { embeddedDatabase, externalDatabase } from './test-database.ts'

/** Every figure of a benchmark, in the order of measurement. */
export const figures = {
  bulk: { title: 'bulk submit', unit: 'jobs/s' },
  drain: { title: 'drain, 1 process', unit: 'jobs/s' },
  single: { title: 'single submits, 20 callers', unit: 'jobs/s' },
  pickup50: { title: 'pickup, p50', unit: 'ms' },
  pickup95: { title: 'pickup, p95', unit: 'ms' },
  pickup99: { title: 'pickup, p99', unit: 'ms' },
} as const satisfies Record<string, { title: string; unit: string }>

/** The name of a figure. */
export type FigureName = keyof typeof figures

/** One figure of a benchmark: the median of its rounds, and their spread as a share of it. */
export interface Figure {
  median: number
  spread: number
  /** Whether the spread is so large that only large differences are significant. */
  isNoisy: boolean
  rounds: number[]
}

/** The result of a benchmark. */
export interface BenchReport {
  jobs: number
  figures: Record<FigureName, Figure>
  holdfast: string
  postgres: string
  isDurable: boolean
  cpu: string
  cores: number
  node: string
  load: number
}

/** How to run a benchmark. */
export interface BenchOptions {
  /** The server to use. Default: a temporary embedded one. */
  url?: string
  jobs: number
  rounds: number
  signal: AbortSignal
  onStep?: (step: { round: number; title: string }) => void
}

const batchSize = 5_000
const callers = 20
const singleMs = 2_000
const samples = 200

const noop = defineJob('bench.noop', { run: () => undefined })
let stampedMs = 0
const stamp = defineJob('bench.stamp', {
  run: () => {
    stampedMs = performance.now()
  },
})

/** Measures the cost of a job that does nothing on this machine, in a database that nothing else uses. */
export async function bench(options: BenchOptions): Promise<BenchReport> {
  const database = options.url ? await externalDatabase(options.url) : await embeddedDatabase()
  try {
    const facts = await runOnce(database.url, serverFacts, {})
    return {
      jobs: options.jobs,
      figures: await measure(database.url, options),
      holdfast: version,
      postgres: facts[0]?.version ?? 'unknown',
      isDurable: facts[0]?.is_durable === true,
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: availableParallelism(),
      node: process.version,
      load: Number(loadavg()[0]?.toFixed(2)),
    }
  } finally {
    await database.stop()
  }
}

async function measure(url: string, { jobs, rounds, signal, onStep }: BenchOptions): Promise<BenchReport['figures']> {
  const hf = await connect({ url, migrate: true, jobs: [noop, stamp], logLevel: 'silent' })
  const found: Record<string, number>[] = []
  const steps = {
    'bulk submit': async () => ({ bulk: await bulk(hf, jobs) }),
    drain: async () => ({ drain: await drain(hf, jobs) }),
    'single submits': async () => ({ single: await single(hf) }),
    pickup: async () => {
      await drain(hf, 0) // the jobs of the single submits
      return pickup(hf)
    },
  }
  try {
    for (let round = 1; round <= rounds; round++)
      for (const [title, step] of Object.entries(steps)) {
        if (signal.aborted) throw new HoldfastError('not_running', 'The benchmark was interrupted.')
        onStep?.({ round, title })
        found.push(await step())
      }
  } finally {
    await hf.close()
  }
  const roundsOf = (name: string) => found.flatMap((step) => step[name] ?? [])
  const names = Object.keys(figures) as FigureName[]
  return Object.fromEntries(names.map((name) => [name, summary(roundsOf(name))])) as BenchReport['figures']
}

async function bulk(hf: Holdfast, jobs: number): Promise<number> {
  const startedMs = performance.now()
  for (let done = 0; done < jobs; done += batchSize) {
    const numbers = Array.from({ length: Math.min(batchSize, jobs - done) }, (_, index) => done + index)
    await hf.submitMany(
      noop,
      numbers.map((n) => ({ input: { n } })),
    )
  }
  return perSecond(jobs, startedMs)
}

/** Measures from starting the worker until the database has no live jobs. */
async function drain(hf: Holdfast, jobs: number): Promise<number> {
  const client = new pg.Client(connectionOptions(hf.url))
  await client.connect()
  const { run } = runnerIn(client)
  const startedMs = performance.now()
  const working = await hf.work()
  while ((await run(hasLiveJobs, {}))[0]?.has) await new Promise((resolve) => setTimeout(resolve, 5))
  const rate = perSecond(jobs, startedMs)
  await working.stop()
  await client.end()
  return rate
}

async function single(hf: Holdfast): Promise<number> {
  const startedMs = performance.now()
  let submitted = 0
  const caller = async () => {
    while (performance.now() < startedMs + singleMs) {
      await hf.submit(noop, { n: submitted })
      submitted += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return perSecond(submitted, startedMs)
}

/** Measures from the call of submit to the first line of the handler, one job at a time. */
async function pickup(hf: Holdfast): Promise<Record<string, number>> {
  const working = await hf.work()
  const waits: number[] = []
  for (let index = 0; index < samples; index++) {
    const calledMs = performance.now()
    await (await hf.submit(stamp, null)).result()
    waits.push(stampedMs - calledMs)
  }
  await working.stop()
  return { pickup50: shareOf(waits, 0.5), pickup95: shareOf(waits, 0.95), pickup99: shareOf(waits, 0.99) }
}

function perSecond(count: number, sinceMs: number): number {
  return (count * 1000) / (performance.now() - sinceMs)
}

function shareOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function summary(rounds: number[]): Figure {
  const sorted = rounds.toSorted((a, b) => a - b)
  const median = ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
  const spread = median === 0 ? 0 : ((sorted.at(-1) ?? 0) - (sorted[0] ?? 0)) / median
  return { median, spread, isNoisy: spread > 0.2, rounds }
}
