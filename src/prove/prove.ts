/**
 * The proof: real processes, each behind a proxy of its own that knows every statement by its name, broken at every
 * statement by every fault.
 *
 * What it shows: whatever breaks wherever, all jobs become final within the bound, nothing acknowledged is lost, nothing is settled
 * twice, what was committed is what the winning attempt returned, and the audit is clean. Nothing in the product knows that it is
 * tried: faults come from outside. What it does not show is said by catalogue.ts (statements left out) and by the reasons
 * in the matrix (faults that make no sense).
 */
import { HoldfastError } from '../errors/errors.ts'
import { runCell, type Yard } from './cell.ts'
import { embeddedGround, type Ground, givenGround } from './ground.ts'
import { inLanes } from './lanes.ts'
import { makePool } from './member.ts'
import { namedPlace, type Place, planOf, survey } from './plan.ts'
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
    await Promise.all(grounds.map((ground) => ground.stop()))
  }
}

/** The server of most cells, and one for those that restart it, so that they disturb nobody. */
async function openGrounds({ url, isForced = false }: ProveOptions): Promise<[Ground, ...Ground[]]> {
  if (url) return [await givenGround(url, { isForced })]
  return Promise.all([embeddedGround(), embeddedGround()])
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
  grounds: [Ground, ...Ground[]],
  startedMs: number,
): Promise<ProofReport> {
  const { seed = 1, lanes = 4, isQuick = false } = options
  const yard = { ...parts, ground: grounds[0] }
  options.onProgress?.({ phase: 'surveying', done: 0, total: 0, failed: 0 })
  const surveyed = await survey(yard, seed, lanes)
  const places = options.cell
    ? [namedPlace(surveyed.found, options.cell, seed)]
    : Array.from({ length: isQuick ? 1 : rounds }, (_, round) =>
        planOf(surveyed.found, { seed: seed + round, isQuick }),
      ).flat()
  const chosen = places.filter(({ statement }) => options.statements?.includes(statement) ?? true)
  const tried = await breakAll(options, parts, grounds, chosen)
  const seconds = (performance.now() - startedMs) / 1000
  const { restartIs } = yard.ground
  return reportOf({ survey: surveyed, places: chosen, tried, seed, isQuick, restartIs, seconds })
}

async function breakAll(
  { lanes = 4, onProgress }: ProveOptions,
  parts: Omit<Yard, 'ground'>,
  [main, second]: [Ground, ...Ground[]],
  places: Place[],
): Promise<Tried[]> {
  const cells = places.flatMap((place) => ('cell' in place ? place.cell : []))
  const tried: Tried[] = []
  const report = () => {
    const failed = tried.filter(({ outcome }) => outcome.wrongs.length > 0).length
    const last = tried.at(-1)
    onProgress?.({ phase: 'breaking', done: tried.length, total: cells.length, failed, ...(last && { last }) })
  }
  const run = (ground: Ground) => async (cell: (typeof cells)[number]) => {
    tried.push({ cell, outcome: await runCell({ ...parts, ground }, cell) })
    report()
  }
  report()
  const restarting = second ? cells.filter(({ fault }) => fault === 'restart') : []
  const others = cells.filter((cell) => !restarting.includes(cell))
  const restartLane = inLanes(restarting, 1, run(second ?? main))
  await Promise.all([inLanes(others, restarting.length > 0 ? lanes - 1 : lanes, run(main)), restartLane])
  return tried
}
