import { type Audit, audit } from '../audit/audit.ts'
import { messageOf } from '../errors/errors.ts'
import { boundOf } from '../reaper/bound.ts'
import { continued } from './barriers.sql.ts'
import { findBusWrongs, findDoubleReading } from './bus-check.ts'
import { committed, logged } from './case.sql.ts'
import { type Case, isOver, makeCase } from './case.ts'
import { findOverlaps, findWrongs } from './check.ts'
import { makeCrew } from './crew.ts'
import { eventually, inTime } from './deadline.ts'
import { throughPort } from './dial.ts'
import { type FaultName, faultOf } from './faults.ts'
import type { Ground } from './ground.ts'
import type { Pool } from './member.ts'
import { randomOf } from './random.ts'
import { type Scenario, statementOf } from './scenario.ts'
import { boundFor, cellConfig, readerBoundMs } from './settings.ts'
import { startStopwatch } from './stopwatch.ts'
import { type Hit, hasMoved, isReadAgain, lookAtHit, strike, untilSentAgain } from './strike.ts'
import { makeTraps, type Sighting, type Sprung } from './trap.ts'

/** One fault at one statement. */
export interface Cell {
  statement: string
  fault: FaultName
  occurrence: number
  /** Where to meet the statement; the next one is tried only if it was not sent in the one before. */
  scenarios: readonly Scenario[]
  seed: number
}

/** What became of a cell. */
export interface CellOutcome {
  /** From the fault until every job that it hit had moved again; null if the fault never struck. */
  recoveryMs: number | null
  /** How much of that the machine kept from everybody; it is not held against the bound. */
  starvedMs: number
  boundMs: number
  wrongs: string[]
  /** Whether nothing is wrong but the time that it took. */
  isOnlyLate: boolean
  /** Whether the statement occurred, so that the fault could strike. */
  hasStruck: boolean
  seconds: number
}

/** What cells stand on. */
export interface Yard {
  ground: Ground
  pool: Pool
  /** A module with other kinds than the prover's own. */
  module: string | undefined
}

const finalMs = 20_000
const strikeMs = 40_000
const lingerMs = 4_000
const auditMs = 60_000

/** Runs one cell, in the first of its scenarios in which the statement is sent. */
export async function runCell(yard: Yard, cell: Cell, triesLeft = 1): Promise<CellOutcome> {
  const [scenario, ...others] = cell.scenarios as [Scenario, ...Scenario[]]
  const outcome = await runIn(yard, scenario, cell)
  if (outcome.hasStruck) return outcome
  // so often, or in this scenario, or on this machine it comes only at times
  if (others.length > 0) return runCell(yard, { ...cell, occurrence: 1, scenarios: others }, triesLeft)
  return triesLeft > 0 ? runCell(yard, { ...cell, occurrence: 1 }, triesLeft - 1) : outcome
}

/** A scenario with a fault in it, then every check. */
async function runIn(yard: Yard, scenario: Scenario, cell: Cell): Promise<CellOutcome> {
  const startedMs = performance.now()
  const wrongs: string[] = []
  const delays: string[] = []
  let struck: Promise<Recovery> | undefined
  let boundMs = boundFor(faultOf(cell.fault).rung)
  await playOut(yard, scenario, cell.seed, {
    prepare({ lay, on, database }) {
      lay(
        {
          statement: statementOf(cell.statement),
          verdict: faultOf(cell.fault).at,
          occurrence: cell.occurrence,
          behind: scenario.behind?.[statementOf(cell.statement)],
        },
        (sprung) => {
          struck = struckBy(yard, cell.fault, on, sprung, database)
          struck.catch(() => {}) // told below
        },
      )
    },
    async finish(on) {
      await eventually(() => struck !== undefined, { ms: lingerMs, what: `${cell.statement} was sent` }).catch(() => {})
      if (!struck) return wrongs.push(`${cell.statement} was never sent for the ${ordinal(cell.occurrence)} time`)
      await inTime(struck, strikeMs, `the fault ${cell.fault} was over`)
      // whatever was hit, the system has to take and do new work after it
      await on.submit('short')
      return undefined
    },
    calm: () => struck,
    // a frozen process cannot tell its handlers to stop; nobody else is excused
    judge: (on) =>
      void (faultOf(cell.fault).mayOverlap || delays.push(...findOverlaps(on.crew), ...findDoubleReading(on.crew))),
    wrongs,
  })
  const recovery = struck ? await struck.catch((error) => void wrongs.push(messageOf(error))) : undefined
  // a remote worker has no lock that could go before its lease
  if (recovery?.isRemote || scenario.afterOutage?.includes(statementOf(cell.statement)))
    boundMs = Math.max(boundMs, boundFor('lease ran out'))
  if (recovery?.hasCursors) boundMs = Math.max(boundMs, readerBoundMs)
  if (recovery && recovery.tookMs - recovery.starvedMs > boundMs)
    delays.push(
      `what was hit moved again after ${Math.round(recovery.tookMs)} ms; the bound is ${boundMs} ms, ` +
        `and the machine stood still for ${Math.round(recovery.starvedMs)} ms`,
    )
  return {
    recoveryMs: recovery?.tookMs ?? null,
    starvedMs: recovery?.starvedMs ?? 0,
    boundMs,
    wrongs: [...wrongs, ...delays],
    isOnlyLate: wrongs.length === 0 && delays.length > 0,
    hasStruck: struck !== undefined,
    seconds: (performance.now() - startedMs) / 1000,
  }
}

interface Recovery {
  tookMs: number
  starvedMs: number
  /** Whether cursors were hit. */
  hasCursors: boolean
  /** Whether a remote worker was hit. */
  isRemote: boolean
}

async function struckBy(yard: Yard, fault: FaultName, on: Case, sprung: Sprung, database: string): Promise<Recovery> {
  const hit = await lookAtHit(on, sprung)
  const watch = startStopwatch()
  const restart = async () => {
    await yard.ground.restart(database)
    watch.reset() // while the server is away, nobody can move anything
  }
  const striking = strike(fault, { on, sprung, hit, restart, reset: watch.reset })
  const resent = striking.then((event) =>
    event === undefined ? undefined : untilSentAgain(on, event, sprung.post.member.pid, finalMs),
  )
  const recovered = Promise.all([untilMoved(on, fault, hit), resent]).then(
    () => ({ ...watch.stop(), hasCursors: hit.cursors.length > 0, isRemote: sprung.post.role === 'remote' }),
    (error) => {
      watch.stop()
      throw error
    },
  )
  recovered.catch(() => {}) // told by whoever waits for it
  await striking
  return recovered
}

async function untilMoved(on: Case, fault: FaultName, hit: Hit): Promise<void> {
  await Promise.all([untilJobsMoved(on, hit), untilReadAgain(on, fault, hit)])
}

async function untilReadAgain(on: Case, fault: FaultName, { cursors }: Hit): Promise<void> {
  if (cursors.length === 0) return
  await eventually(
    async () => {
      const now = await on.bus.cursors()
      return cursors.every((before) => isReadAgain(fault, before, now))
    },
    { ms: finalMs, what: 'the cursors that were hit were read from again' },
  )
}

async function untilJobsMoved(on: Case, hit: Hit): Promise<void> {
  if (hit.jobs.length === 0) return
  await eventually(
    async () => {
      const now = await on.jobs()
      return hit.jobs.every((before) =>
        hasMoved(
          before,
          now.find(({ id }) => id === before.id),
        ),
      )
    },
    {
      ms: finalMs,
      what: `these jobs had moved again: ${hit.jobs.map(({ id, kind }) => `${id} (${kind})`).join(', ')}`,
    },
  )
}

/** What surrounds a scenario. */
export interface Play {
  prepare(parts: { lay: ReturnType<typeof makeTraps>['lay']; on: Case; database: string }): void
  finish(on: Case): Promise<unknown>
  /** Resolves when nothing is being broken any more. */
  calm(): Promise<unknown> | undefined
  /** Looks at what only this play can judge. */
  judge(on: Case): void
  /** Everything that is wrong is added here. */
  wrongs: string[]
}

/** Plays a scenario on a database of its own, to the end of all its jobs, and checks what it left behind. */
export async function playOut(
  yard: Yard,
  scenario: Scenario,
  seed: number,
  play: Play,
): Promise<{ seen: ReadonlyMap<string, Sighting> }> {
  const { ground, pool } = yard
  const database = await ground.lend(scenario.isBlank ? 'blank' : 'migrated')
  const traps = makeTraps()
  const urlThrough = (port: number) => throughPort(ground.url(database), port)
  const crew = makeCrew({ pool, traps, target: ground.target, urlThrough, module: yard.module })
  const on = makeCase({
    crew,
    url: () => ground.url(database),
    random: randomOf(seed, scenario.name),
    seen: traps.seen,
  })
  try {
    for (const one of scenario.prelude ?? []) layPrelude(yard, one, traps.lay, on, database)
    play.prepare({ lay: traps.lay, on, database })
    await scenario.run(on)
    await play.finish(on)
    await untilAllFinal(on)
    await on.bus.untilQuiet(finalMs)
    play.wrongs.push(...(await judge(on)))
    play.judge(on)
  } catch (error) {
    play.wrongs.push(messageOf(error))
  }
  // the end of a cell is not part of it: a statement that is sent only there needs a scenario of its own
  const seen = new Map(traps.seen)
  traps.clear()
  await inTime(Promise.resolve(play.calm()), strikeMs, 'the fault was over').catch(() => {})
  await crew.stop()
  play.wrongs.push(...crew.troubles, ...on.troubles)
  await on.close()
  await ground.takeBack(database)
  return { seen }
}

function layPrelude(
  yard: Yard,
  { statement, fault }: NonNullable<Scenario['prelude']>[number],
  lay: Parameters<Play['prepare']>[0]['lay'],
  on: Case,
  database: string,
): void {
  lay({ statement, verdict: faultOf(fault).at, occurrence: 1 }, (sprung) => {
    struckBy(yard, fault, on, sprung, database).catch((error) => on.troubles.push(messageOf(error)))
  })
}

async function untilAllFinal(on: Case): Promise<void> {
  let open: string[] = []
  await eventually(
    async () => {
      open = (await on.jobs()).filter((job) => !isOver(job)).map(({ id, kind, state }) => `${id} (${kind}, ${state})`)
      return open.length === 0
    },
    { ms: finalMs, what: 'all jobs were final' },
  ).catch((error: Error) => {
    throw new Error(`${error.message} Still open: ${open.join(', ')}.`)
  })
}

async function judge(on: Case): Promise<string[]> {
  const within = { boundMs: boundOf(cellConfig()), latest: null, budgetMs: auditMs }
  const audited = await audit({ run: on.ask, transaction: (work) => work({ run: on.ask }) }, within)
  const { effects, killed, marks } = on.crew
  const barriers = { promised: on.barriers.promised, continued: await on.ask(continued, {}), marks }
  const [jobs, events, outputs] = [await on.jobs(), await on.ask(logged, {}), await on.ask(committed, {})]
  const { acknowledged } = on
  return [
    ...sentencesOf(audited),
    ...findWrongs({ acknowledged, jobs, events, outputs, effects, killed, barriers }),
    ...findBusWrongs(await on.bus.evidence()),
  ]
}

function sentencesOf({ violations, unfinished }: Audit): string[] {
  const broken = violations.map(({ invariant, total, examples: [first] }) => {
    return `audit: ${invariant} is broken ${total} times; first ${first?.subject}: ${first?.found}`
  })
  return [...broken, ...unfinished.map((invariant) => `audit: ${invariant} could not be checked in time`)]
}

function ordinal(count: number): string {
  return count === 1 ? 'first' : `${count}.`
}
