import { messageOf } from '../errors/errors.ts'
import { findDoubleReading } from './bus-check.ts'
import { findOverlaps } from './check.ts'
import { eventually, inTime } from './deadline.ts'
import { type Fault, type FaultName, faultOf } from './faults.ts'
import { type Recovery, strikeAndRecover } from './recovery.ts'
import { type Resources, runScenario, type ScenarioHooks, type ScenarioRun } from './run-scenario.ts'
import { type Scenario, statementOf } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import { boundFor, readerBoundMs } from './settings.ts'

/** One fault at one statement. */
export interface Cell {
  statement: string
  fault: FaultName
  occurrence: number
  /** The scenarios that send the statement. The next one is tried only if the one before did not send it. */
  scenarios: readonly Scenario[]
  seed: number
}

/** The result of a cell. */
export interface CellOutcome {
  /** From the fault until every job that it hit had moved again; null if the fault never struck. */
  recoveryMs: number | null
  /** For how much of that the machine was too busy to run anyone. It does not count against the bound. */
  starvedMs: number
  boundMs: number
  wrongs: string[]
  /** Whether nothing is wrong except how long it took. */
  isOnlyLate: boolean
  /** Whether the statement was sent, so that the fault could strike. */
  hasStruck: boolean
  seconds: number
}

const strikeMs = 40_000
const lingerMs = 4_000

/** Runs one cell, in the first of its scenarios in which the statement is sent. */
export async function runCell(resources: Resources, cell: Cell, triesLeft = 1): Promise<CellOutcome> {
  const [scenario, ...others] = cell.scenarios as [Scenario, ...Scenario[]]
  const outcome = await runIn(resources, scenario, cell)
  if (outcome.hasStruck) return outcome
  // at this occurrence, in this scenario or on this machine the statement is not always sent
  if (others.length > 0) return runCell(resources, { ...cell, occurrence: 1, scenarios: others }, triesLeft)
  return triesLeft > 0 ? runCell(resources, { ...cell, occurrence: 1 }, triesLeft - 1) : outcome
}

async function runIn(resources: Resources, scenario: Scenario, cell: Cell): Promise<CellOutcome> {
  const startedMs = performance.now()
  const strike = new CellStrike(cell, scenario)
  const { wrongs } = await runScenario(resources, scenario, cell.seed, strike)
  const outcome = await strike.outcome(wrongs)
  return { ...outcome, seconds: (performance.now() - startedMs) / 1000 }
}

/** The fault of a cell while its scenario runs: waits for the statement, strikes, and judges the recovery. */
class CellStrike implements ScenarioHooks {
  readonly #cell: Cell
  readonly #scenario: Scenario
  readonly #fault: Fault
  readonly #wrongs: string[] = []
  readonly #delays: string[] = []
  #recovery: Promise<Recovery> | undefined

  constructor(cell: Cell, scenario: Scenario) {
    this.#cell = cell
    this.#scenario = scenario
    this.#fault = faultOf(cell.fault)
  }

  prepare({ context, traps, restart }: ScenarioRun): void {
    const { fault, occurrence } = this.#cell
    const statement = statementOf(this.#cell.statement)
    const behind = this.#scenario.behind?.[statement]
    traps.set({ statement, moment: this.#fault.at, occurrence, behind }, (held) => {
      this.#recovery = strikeAndRecover(fault, { context, held, restart })
      this.#recovery.catch(() => {}) // reported with the outcome
    })
  }

  async finish(context: ScenarioContext): Promise<void> {
    const { statement, fault, occurrence } = this.#cell
    const hasStruck = () => this.#recovery !== undefined
    await eventually(hasStruck, { ms: lingerMs, what: `${statement} was sent` }).catch(() => {})
    if (!this.#recovery) {
      this.#wrongs.push(`${statement} was never sent for the ${ordinal(occurrence)} time`)
      return
    }
    await inTime(this.#recovery, strikeMs, `the fault ${fault} was over`)
    // whatever was hit, the system has to accept and do new work after it
    await context.submit('short')
  }

  check({ processes }: ScenarioContext): void {
    // a frozen process cannot abort its handlers; all others have to
    if (this.#fault.mayOverlap) return
    this.#delays.push(...findOverlaps(processes), ...findDoubleReading(processes))
  }

  async untilCalm(): Promise<void> {
    await this.#recovery
  }

  async outcome(found: string[]): Promise<Omit<CellOutcome, 'seconds'>> {
    const wrongs = [...this.#wrongs, ...found]
    const delays = [...this.#delays]
    const recovery = await this.#recovery?.catch((error) => {
      wrongs.push(messageOf(error))
      return undefined
    })
    const boundMs = this.#boundOf(recovery)
    if (recovery && recovery.tookMs - recovery.starvedMs > boundMs)
      delays.push(
        `what the fault hit moved again after ${Math.round(recovery.tookMs)} ms; the bound is ${boundMs} ms, ` +
          `and the machine stalled for ${Math.round(recovery.starvedMs)} ms`,
      )
    return {
      recoveryMs: recovery?.tookMs ?? null,
      starvedMs: recovery?.starvedMs ?? 0,
      boundMs,
      wrongs: [...wrongs, ...delays],
      isOnlyLate: wrongs.length === 0 && delays.length > 0,
      hasStruck: this.#recovery !== undefined,
    }
  }

  #boundOf(recovery: Recovery | undefined): number {
    return Math.max(
      boundFor(this.#fault.rung),
      this.#scenario.rung ? boundFor(this.#scenario.rung) : 0,
      // a remote worker has no lock that could be released before its lease runs out
      recovery?.isRemote ? boundFor('lease ran out') : 0,
      recovery?.hasCursors ? readerBoundMs : 0,
    )
  }
}

function ordinal(count: number): string {
  return ['first', 'second', 'third'][count - 1] ?? `${count}th`
}
