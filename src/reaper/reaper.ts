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
  readonly #lastRunMs = new Map<Duty, number>()
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
    const sweep = await runSweep(this.#store, this.#due(), observer, () => this.#isLeader())
    this.#leader.swept(sweep.sweepMs)
    return config.sweepMs
  }

  #isLeader(): boolean {
    return this.#leader.term() !== null
  }

  /** The duties that are due. A duty is noted when it runs: those that a deposed leader did not reach stay due. */
  #due(): Duty[] {
    const nowMs = performance.now()
    const isDue = (duty: Duty) => nowMs - (this.#lastRunMs.get(duty) ?? Number.NEGATIVE_INFINITY) >= duty.everyMs
    return this.#duties.filter(isDue).map((duty) => ({
      ...duty,
      run: (...given) => {
        this.#lastRunMs.set(duty, nowMs)
        return duty.run(...given)
      },
    }))
  }

  async #runBeside(duty: Duty, observer: ReaperObserver, signal: AbortSignal): Promise<number> {
    const { store, config } = this.#options
    const isOurs = () => duty.isAnyones === true || this.#isLeader()
    if (!isOurs()) return config.sweepMs
    await runSweep(store, [duty], observer, () => isOurs() && !signal.aborted, signal)
    return Math.max(config.sweepMs, duty.everyMs, this.#isLeader() ? 0 : followerMs)
  }
}

/** Runs duties one after the other. A failing duty does not block the others, and a deposed leader stops between two batches. */
export async function runSweep(
  store: Runner,
  due: readonly Duty[],
  observer: ReaperObserver,
  mayGoOn: () => boolean,
  signal?: AbortSignal,
): Promise<Sweep> {
  const startedMs = performance.now()
  let recovered = 0
  let failed = 0
  for (const duty of due) {
    try {
      for (let isFull = true; isFull && mayGoOn(); ) {
        const report = await duty.run(store, signal)
        observer.done(duty.name, report)
        recovered += report.revived.length + report.quarantined.length + report.healed.length
        failed += report.failed.length
        isFull = report.isFull
      }
    } catch (error) {
      failed += 1
      observer.onError(error, duty.name)
    }
  }
  const sweep = { sweepMs: performance.now() - startedMs, recovered, failed, isSystemic: failed > 0 && recovered === 0 }
  observer.swept(sweep)
  return sweep
}
