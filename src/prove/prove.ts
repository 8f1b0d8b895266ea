/**
 * The proof: real processes, each behind its own proxy that knows every statement by name, broken at every statement by every fault.
 *
 * What it shows: whatever breaks, all jobs become final within the bound, nothing acknowledged is lost, nothing is settled twice, what was
 * committed is what the winning attempt returned, and the audit is clean. The product does not know that it is being tested: all faults
 * come from outside. What it does not show: statements that catalogue.ts leaves out, and faults that don't apply to a statement, for the
 * reason in the matrix.
 */
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type Cell, type CellOutcome, runCell } from './cell.ts'
import type { FaultName } from './faults.ts'
import { inLanes } from './lanes.ts'
import { MemberPool } from './member-pool.ts'
import { namedEntry, type PlannedEntry, planRounds, statementIn, survey } from './plan.ts'
import { type CellRun, type ProofReport, reportOf } from './report.ts'
import type { Resources } from './run-scenario.ts'
import { embeddedServer, externalServer, type TestServer } from './test-server.ts'

/** How to run a proof. */
export interface ProveOptions {
  /** The Postgres server to use. Default: a temporary embedded one. */
  url?: string
  /** Whether to use a server whose database already has jobs. */
  isForced?: boolean
  /** Whether to try only one or two faults per statement. */
  isQuick?: boolean
  seed?: number
  /** Only this cell: "statement × fault". */
  cell?: string
  /** Only these statements. */
  statements?: readonly string[]
  /** Only these faults. */
  faults?: readonly FaultName[]
  /** How many cells to run in parallel. */
  lanes?: number
  /** A module that exports `proverKinds`, to see the proof fail with kinds that break its rules. */
  module?: string
  signal?: AbortSignal
  onProgress?: (progress: Progress) => void
}

/** The progress of a proof. */
export interface Progress {
  phase: 'starting' | 'surveying' | 'breaking'
  done: number
  total: number
  failed: number
  last?: CellRun
}

/** Each round draws other occurrences to strike. Cells of an earlier round are not repeated. */
const rounds = 3

type Servers = [main: TestServer, second?: Promise<TestServer>]

/** Runs a proof. However it ends, everything that it started is cleaned up. */
export async function prove(options: ProveOptions = {}): Promise<ProofReport> {
  const startedMs = performance.now()
  options.onProgress?.({ phase: 'starting', done: 0, total: 0, failed: 0 })
  const servers = await openServers(options)
  const pool = new MemberPool(2)
  const work = proveOn(options, { pool, module: options.module }, servers, startedMs)
  work.catch(() => {}) // after an interruption nothing waits for it
  try {
    return await Promise.race([work, interrupted(options.signal)])
  } finally {
    await pool.close()
    for (const server of servers)
      await Promise.resolve(server).then(
        (opened) => opened?.stop(),
        () => {},
      )
  }
}

/** The server of most cells, and a second one for cells that restart theirs, so that they don't disturb the others. */
async function openServers({ url, isForced = false }: ProveOptions): Promise<Servers> {
  if (url) return [await externalServer(url, { isForced })]
  const first = await embeddedServer()
  const second = embeddedServer() // not needed until the survey is done
  second.catch(() => {})
  return [first, second]
}

function interrupted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(new HoldfastError('not_running', 'The proof was interrupted.'))
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
  })
}

async function proveOn(
  options: ProveOptions,
  parts: Omit<Resources, 'server'>,
  servers: Servers,
  startedMs: number,
): Promise<ProofReport> {
  const { seed = 1, lanes = 4, isQuick = false } = options
  const resources = { ...parts, server: servers[0] }
  options.onProgress?.({ phase: 'surveying', done: 0, total: 0, failed: 0 })
  const wanted = options.cell ? [statementIn(options.cell)] : options.statements
  const surveyed = await survey(resources, { seed, lanes, wanted })
  const entries = options.cell
    ? [namedEntry(surveyed.found, options.cell, seed)]
    : planRounds(surveyed.found, { seed, isQuick, rounds: isQuick ? 1 : rounds })
  const chosen = entries.filter(
    ({ statement, fault }) =>
      (options.statements?.includes(statement) ?? true) && (options.faults?.includes(fault) ?? true),
  )
  const runs = await runAll(options, parts, servers, chosen)
  const seconds = (performance.now() - startedMs) / 1000
  const { restartIs } = resources.server
  return reportOf({ survey: surveyed, entries: chosen, runs, seed, isQuick, restartIs, seconds })
}

async function runAll(
  { lanes = 4, onProgress }: ProveOptions,
  parts: Omit<Resources, 'server'>,
  [main, second]: Servers,
  entries: PlannedEntry[],
): Promise<CellRun[]> {
  const cells = entries.flatMap((entry) => ('cell' in entry ? entry.cell : []))
  const runs: CellRun[] = []
  const report = () => {
    const failed = runs.filter(({ outcome }) => outcome.wrongs.length > 0 && !outcome.isOnlyLate).length
    const last = runs.at(-1)
    onProgress?.({ phase: 'breaking', done: runs.length, total: cells.length, failed, ...(last && { last }) })
  }
  const serverOf = async (cell: Cell) => (cell.fault === 'restart' && second ? await second : main)
  const outcomeOf = async (cell: Cell) =>
    runCell({ ...parts, server: await serverOf(cell) }, cell).catch(outcomeOfProverError)
  const run = async (cell: Cell) => {
    runs.push({ cell, outcome: await outcomeOf(cell), lateMs: [] })
    report()
  }
  report()
  const restarting = second ? cells.filter(({ fault }) => fault === 'restart') : []
  const others = cells.filter((cell) => !restarting.includes(cell))
  await Promise.all([inLanes(others, restarting.length > 0 ? lanes - 1 : lanes, run), inLanes(restarting, 1, run)])
  return repeatLateCells(runs, outcomeOf)
}

/** A cell that the prover itself could not run has not passed. */
function outcomeOfProverError(error: unknown): CellOutcome {
  const wrongs = [`the prover failed: ${messageOf(error)}`]
  return { recoveryMs: null, starvedMs: 0, boundMs: 0, wrongs, isOnlyLate: false, hasStruck: false, seconds: 0 }
}

/** How often a late cell is run again. A machine that others use can be slow twice in a row; a recovery that is too slow is so every time. */
const repeats = 2

/** Runs late cells again, one at a time: with many cells in parallel, the machine itself may have been too slow. */
async function repeatLateCells(runs: CellRun[], outcomeOf: (cell: Cell) => Promise<CellOutcome>): Promise<CellRun[]> {
  const all: CellRun[] = []
  for (const { cell, outcome } of runs) {
    const tries = [outcome]
    while (tries.at(-1)?.isOnlyLate && tries.length <= repeats) tries.push(await outcomeOf(cell))
    const last = tries.pop() as CellOutcome
    all.push({ cell, outcome: last, lateMs: tries.map(({ recoveryMs }) => recoveryMs ?? 0) })
  }
  return all
}
