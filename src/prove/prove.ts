/**
 * The proof: real processes, each behind a proxy of its own that knows every statement by its name, broken at every
 * statement by every fault.
 *
 * What it shows: whatever breaks wherever, all jobs become final within the bound, nothing acknowledged is lost, nothing is settled
 * twice, what was committed is what the winning attempt returned, and the audit is clean. Nothing in the product knows that it is
 * tried: faults come from outside. What it does not show is said by catalogue.ts (statements left out) and by the reasons
 * in the matrix (faults that make no sense).
 */
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type Cell, type CellOutcome, runCell, type Yard } from './cell.ts'
import type { FaultName } from './faults.ts'
import { embeddedGround, type Ground, givenGround } from './ground.ts'
import { inLanes } from './lanes.ts'
import { makePool } from './member.ts'
import { namedPlace, type Place, planOf, statementIn, survey } from './plan.ts'
import { type ProofReport, reportOf, type Tried } from './report.ts'

/** How to prove. */
export interface ProveOptions {
  /** A Postgres to use; without it an embedded one of its own. */
  url?: string
  /** Whether to use a server whose database already holds jobs. */
  isForced?: boolean
  /** One occurrence of every statement, the main faults only. */
  isQuick?: boolean
  seed?: number
  /** Only this cell: "statement × fault". */
  cell?: string
  /** Only these statements. */
  statements?: readonly string[]
  /** Only these faults. */
  faults?: readonly FaultName[]
  /** How many cells at once. */
  lanes?: number
  /** A module that exports `proverKinds` like our own: for those who want to see the proof fail. */
  module?: string
  signal?: AbortSignal
  onProgress?: (progress: Progress) => void
}

/** How far a proof is. */
export interface Progress {
  phase: 'starting' | 'surveying' | 'breaking'
  done: number
  total: number
  failed: number
  last?: Tried
}

const rounds = 3

type Grounds = [main: Ground, second?: Promise<Ground>]

/** Proves, and cleans up whatever it started, however it ends. */
export async function prove(options: ProveOptions = {}): Promise<ProofReport> {
  const startedMs = performance.now()
  options.onProgress?.({ phase: 'starting', done: 0, total: 0, failed: 0 })
  const grounds = await openGrounds(options)
  const pool = makePool(2)
  const work = proveOn(options, { pool, module: options.module }, grounds, startedMs)
  work.catch(() => {}) // after an interruption nobody waits for it
  try {
    return await Promise.race([work, interrupted(options.signal)])
  } finally {
    await pool.close()
    for (const ground of grounds)
      await Promise.resolve(ground).then(
        (opened) => opened?.stop(),
        () => {},
      )
  }
}

/** The server of most cells, and one for those that restart it, so that they disturb nobody. */
async function openGrounds({ url, isForced = false }: ProveOptions): Promise<Grounds> {
  if (url) return [await givenGround(url, { isForced })]
  const first = await embeddedGround()
  const second = embeddedGround() // not needed before the survey is done
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
  parts: Omit<Yard, 'ground'>,
  grounds: Grounds,
  startedMs: number,
): Promise<ProofReport> {
  const { seed = 1, lanes = 4, isQuick = false } = options
  const yard = { ...parts, ground: grounds[0] }
  options.onProgress?.({ phase: 'surveying', done: 0, total: 0, failed: 0 })
  const wanted = options.cell ? [statementIn(options.cell)] : options.statements
  const surveyed = await survey(yard, { seed, lanes, wanted })
  const places = options.cell
    ? [namedPlace(surveyed.found, options.cell, seed)]
    : Array.from({ length: isQuick ? 1 : rounds }, (_, round) =>
        planOf(surveyed.found, { seed: seed + round, isQuick }),
      ).flat()
  const chosen = places.filter(
    ({ statement, fault }) =>
      (options.statements?.includes(statement) ?? true) && (options.faults?.includes(fault) ?? true),
  )
  const tried = await breakAll(options, parts, grounds, chosen)
  const seconds = (performance.now() - startedMs) / 1000
  const { restartIs } = yard.ground
  return reportOf({ survey: surveyed, places: chosen, tried, seed, isQuick, restartIs, seconds })
}

async function breakAll(
  { lanes = 4, onProgress }: ProveOptions,
  parts: Omit<Yard, 'ground'>,
  [main, second]: Grounds,
  places: Place[],
): Promise<Tried[]> {
  const cells = places.flatMap((place) => ('cell' in place ? place.cell : []))
  const tried: Tried[] = []
  const report = () => {
    const failed = tried.filter(({ outcome }) => outcome.wrongs.length > 0 && !outcome.isOnlyLate).length
    const last = tried.at(-1)
    onProgress?.({ phase: 'breaking', done: tried.length, total: cells.length, failed, ...(last && { last }) })
  }
  const run = async (cell: Cell, ground: Ground) => {
    tried.push({ cell, outcome: await runCell({ ...parts, ground }, cell).catch(brokenProver) })
    report()
  }
  report()
  const groundOf = async (cell: Cell) => (cell.fault === 'restart' && second ? await second : main)
  const apart = second ? cells.filter(({ fault }) => fault === 'restart') : []
  const together = cells.filter((cell) => !apart.includes(cell))
  await Promise.all([
    inLanes(together, apart.length > 0 ? lanes - 1 : lanes, (cell) => run(cell, main)),
    inLanes(apart, 1, async (cell) => run(cell, await groundOf(cell))),
  ])
  return tryLateOnesAlone(tried, async (cell) =>
    runCell({ ...parts, ground: await groundOf(cell) }, cell).catch(brokenProver),
  )
}

/** What the prover itself could not do is no pass either. */
function brokenProver(error: unknown): CellOutcome {
  const wrongs = [`the prover failed: ${messageOf(error)}`]
  return { recoveryMs: null, starvedMs: 0, boundMs: 0, wrongs, isOnlyLate: false, hasStruck: false, seconds: 0 }
}

/** A machine that runs many cells at once may be late by itself; whoever is late alone has no excuse. */
async function tryLateOnesAlone(tried: Tried[], again: (cell: Cell) => Promise<CellOutcome>): Promise<Tried[]> {
  const all: Tried[] = []
  for (const one of tried)
    all.push(
      one.outcome.isOnlyLate ? { cell: one.cell, outcome: await again(one.cell), lateMs: one.outcome.recoveryMs } : one,
    )
  return all
}
