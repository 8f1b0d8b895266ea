import type { Config } from '../config/config.ts'
import { type Leader, makeLeader } from '../leader/leader.ts'
import { type Runner, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { makeDuties } from './duties.ts'
import type { Duty, DutyReport } from './duty.ts'

/** What happens in a reaper, for logs and metrics. */
export interface ReaperObserver {
  elected(term: number): void
  deposed(term: number, why: string): void
  /** A duty has run. */
  done(duty: string, report: DutyReport): void
  /** A sweep is over. */
  swept(sweep: Sweep): void
  onError(error: unknown, duty?: string): void
}

/** What one sweep did. */
export interface Sweep {
  sweepMs: number
  recovered: number
  failed: number
  /** Something failed and nothing was recovered: the system is at fault, not a row. */
  isSystemic: boolean
  /** The duties that the budget left unfinished: those that had more to do when they were stopped, and those that it did not reach. */
  left: { cut: string[]; unreached: string[] }
}

/** A candidate for leadership that runs the duties while it is the leader. */
export interface Reaper extends Service {
  /** Its current term if it is the leader; otherwise null. */
  term(): number | null
  /** When its sweep loop last turned, by the wall clock. */
  beatAt(): Date
  /** How long each of its loops has shown no sign of life, whatever the database does. */
  quiet(): { sweeps: number; leads: number }
}

/** Duties that run alongside the sweep, and their observer. */
export interface Outside {
  readonly duties: readonly Duty[]
  readonly observer: ReaperObserver
}

/** What a reaper needs. */
export interface ReaperOptions {
  store: Runner
  config: Config
  observer: ReaperObserver
  outside?: Outside
}

/** How much of a sweep may be spent on backlogs before it starts over and looks for dead workers again. */
const budgetMs = 1_000

/** How often a duty of every process runs in one that is not the leader. The leader is likelier to have the owner configured. */
const followerMs = 2_000

/** Makes a reaper. Any number of processes may run one; one of them is the leader. */
export function makeReaper(options: ReaperOptions): Reaper {
  return new DutyReaper(options)
}

/** Duties that ask other systems run in loops of their own: the recovery bound must not depend on other systems. */
class DutyReaper implements Reaper {
  readonly #options: ReaperOptions
  readonly #leader: Leader
  readonly #sweeper: Loop
  /** One loop for each duty that runs alongside the sweep. */
  readonly #besides: Loop[]
  /** Notes a sign of life of the sweep loop with each statement. */
  readonly #store: Runner
  readonly #duties = makeDuties()
  /** When each duty last ran, by name; none if it had more to do then. */
  readonly #lastRunMs = new Map<string, number>()
  /** The duties that the last sweep did not reach. */
  #unreached: readonly string[] = []
  #beatAt = new Date()

  constructor(options: ReaperOptions) {
    this.#options = options
    this.#leader = this.#makeLeader()
    this.#sweeper = this.#loop(() => this.#sweep())
    this.#store = tellingRunner(options.store, () => this.#sweeper.beat())
    const { duties, observer }: Outside = options.outside ?? { duties: [], observer: options.observer }
    this.#besides = duties.map((duty) => this.#loop((signal) => this.#runBeside(duty, observer, signal)))
  }

  term(): number | null {
    return this.#leader.term()
  }

  beatAt(): Date {
    return this.#beatAt
  }

  quiet(): { sweeps: number; leads: number } {
    return { sweeps: this.#sweeper.quietMs(), leads: this.#leader.quietMs() }
  }

  async start(): Promise<void> {
    await this.#leader.start()
    for (const one of [this.#sweeper, ...this.#besides]) await one.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sweeper, ...this.#besides].map((one) => one.stop()))
    await this.#leader.stop()
  }

  #makeLeader(): Leader {
    const { store, config, observer } = this.#options
    return makeLeader({
      store,
      leaseMs: config.leaderLeaseMs,
      renewMs: config.leaderRenewMs,
      // the database always answers sooner; a leader whose sweeps hang would keep everyone from being recovered
      isFit: () => this.#sweeper.quietMs() <= 2 * config.statementTimeoutMs + config.leaderLeaseMs,
      onElected: (term) => {
        observer.elected(term)
        this.#sweeper.wake()
      },
      onDeposed: observer.deposed,
      onError: observer.onError,
    })
  }

  #loop(turn: (signal: AbortSignal) => Promise<number>): Loop {
    const { config, observer } = this.#options
    return loop({ turn, onError: observer.onError, errorPauseMs: config.sweepMs })
  }

  async #sweep(): Promise<number> {
    const { config, observer } = this.#options
    this.#beatAt = new Date()
    if (!this.#isLeader()) return config.sweepMs
    const { sweepMs, left } = await runSweep(this.#store, this.#due(), observer, () => this.#isLeader(), { budgetMs })
    this.#leader.swept(sweepMs)
    for (const name of left.cut) this.#lastRunMs.delete(name)
    this.#unreached = left.unreached
    return left.cut.length + left.unreached.length > 0 ? 0 : config.sweepMs
  }

  #isLeader(): boolean {
    return this.#leader.term() !== null
  }

  /**
   * The duties that are due. Those that the last sweep did not reach come first among those that share a budget. A duty is noted when it
   * runs: those that a deposed leader did not reach stay due.
   */
  #due(): Duty[] {
    const nowMs = performance.now()
    const isDue = ({ name, everyMs }: Duty) =>
      nowMs - (this.#lastRunMs.get(name) ?? Number.NEGATIVE_INFINITY) >= everyMs
    const rank = ({ name, budget }: Duty) => (budget ? 0 : this.#unreached.includes(name) ? 1 : 2)
    const due = this.#duties.filter(isDue).toSorted((one, other) => rank(one) - rank(other))
    return due.map((duty) => ({
      ...duty,
      run: (...given) => {
        this.#lastRunMs.set(duty.name, nowMs)
        return duty.run(...given)
      },
    }))
  }

  async #runBeside(duty: Duty, observer: ReaperObserver, signal: AbortSignal): Promise<number> {
    const { store, config } = this.#options
    const isOurs = () => duty.isAnyones === true || this.#isLeader()
    if (!isOurs()) return config.sweepMs
    await runSweep(store, [duty], observer, () => isOurs() && !signal.aborted, { signal })
    return Math.max(config.sweepMs, duty.everyMs, this.#isLeader() ? 0 : followerMs)
  }
}

/** Limits of one sweep. */
interface SweepLimits {
  signal?: AbortSignal
  /** Default: none. */
  budgetMs?: number
}

/**
 * Runs duties one after the other, each until it is done or its budget is spent. A failing duty does not block the others, and a deposed
 * leader stops between two batches.
 */
export async function runSweep(
  store: Runner,
  due: readonly Duty[],
  observer: ReaperObserver,
  mayGoOn: () => boolean,
  { signal, budgetMs: mostMs = Number.POSITIVE_INFINITY }: SweepLimits = {},
): Promise<Sweep> {
  const startedMs = performance.now()
  const untilOf = budgets(mostMs)
  const left: Sweep['left'] = { cut: [], unreached: [] }
  let recovered = 0
  let failed = 0
  for (const duty of due) {
    const untilMs = untilOf(duty)
    if (performance.now() >= untilMs) {
      left.unreached.push(duty.name)
      continue
    }
    try {
      let isFull = true
      while (isFull && mayGoOn() && performance.now() < untilMs) {
        const report = await duty.run(store, signal)
        observer.done(duty.name, report)
        recovered += report.revived.length + report.quarantined.length + report.healed.length
        failed += report.failed.length
        isFull = report.isFull
      }
      if (isFull) left.cut.push(duty.name)
    } catch (error) {
      failed += 1
      observer.onError(error, duty.name)
    }
  }
  const sweepMs = performance.now() - startedMs
  const sweep = { sweepMs, recovered, failed, isSystemic: failed > 0 && recovered === 0, left }
  observer.swept(sweep)
  return sweep
}

/** Answers until when a duty that is about to run may do so. The time of those that share a budget runs from the first of them. */
function budgets(mostMs: number): (duty: Duty) => number {
  let sharedUntilMs: number | undefined
  return ({ budget }) => {
    if (budget === 'unlimited') return Number.POSITIVE_INFINITY
    if (budget === 'own') return performance.now() + mostMs
    sharedUntilMs ??= performance.now() + mostMs
    return sharedUntilMs
  }
}
