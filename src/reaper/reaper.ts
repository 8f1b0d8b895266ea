import type { Config } from '../config/config.ts'
import { makeLeader } from '../leader/leader.ts'
import { loop, type Service } from '../service/service.ts'
import { type Runner, tellingRunner } from '../store/store.ts'
import { type Duty, type DutyReport, makeDuties } from './duties.ts'
import { extendDeadlines } from './revive.sql.ts'

/** What happens in a reaper, for whoever logs and counts. */
export interface ReaperNews {
  elected(term: number): void
  deposed(term: number, why: string): void
  /** A duty did something. */
  done(duty: string, report: DutyReport): void
  /** A sweep is over: how many orphans moved, how many could not. */
  swept(sweep: Sweep): void
  trouble(error: unknown, duty?: string): void
}

/** What one sweep did. */
export interface Sweep {
  sweepMs: number
  recovered: number
  failed: number
  /** Something failed and nothing was recovered: not a bad row, but a bad system. */
  isSystemic: boolean
}

/** A candidate that does the duties while it leads. */
export interface Reaper extends Service {
  /** The term it leads in at this moment; null if it does not. */
  term(): number | null
  /** When its loop last turned, by the wall clock. */
  beatAt(): Date
  /** How long each of its loops has given no sign of life: its liveness, whatever the database does. */
  quiet(): { sweeps: number; leads: number }
}

/** Duties that ask other systems, and who hears of them. */
export interface Outside {
  readonly duties: readonly Duty[]
  readonly news: ReaperNews
}

/**
 * Makes a reaper. Any number of processes may run one; one of them leads. Duties that ask other systems run beside the sweep, each in a
 * loop of its own: the bound within which jobs move again must not depend on anybody else.
 */
export function makeReaper(options: { store: Runner; config: Config; news: ReaperNews; outside?: Outside }): Reaper {
  const { config, news, outside } = options
  const store = tellingRunner(options.store, () => sweeper.beat())
  const lastRunMs = new Map<Duty, number>()
  const duties = makeDuties()
  let beatAt = new Date()
  const leader = makeLeader({
    store: options.store,
    leaseMs: config.leaderLeaseMs,
    renewMs: config.leaderRenewMs,
    // no answer of the database takes this long: a leader whose sweeps hang would keep everybody from being recovered
    isFit: () => sweeper.quietMs() <= 2 * config.statementTimeoutMs + config.leaderLeaseMs,
    onGap: (ms) => options.store.run(extendDeadlines, { ms }),
    onElected: (term) => {
      news.elected(term)
      sweeper.wake()
    },
    onDeposed: news.deposed,
    onTrouble: news.trouble,
  })

  function isDue(duty: Duty): boolean {
    return performance.now() - (lastRunMs.get(duty) ?? Number.NEGATIVE_INFINITY) >= duty.everyMs
  }

  // noted as it runs: what a leader that lost its trust half-way did not come to stays due
  function noted(duty: Duty, nowMs: number): Duty {
    return {
      ...duty,
      run: (...given) => {
        lastRunMs.set(duty, nowMs)
        return duty.run(...given)
      },
    }
  }

  const sweeper = loop({
    async turn() {
      beatAt = new Date()
      if (leader.term() === null) return config.sweepMs
      const startedMs = performance.now()
      const due = duties.filter(isDue).map((duty) => noted(duty, startedMs))
      const sweep = await runSweep(store, due, news, () => leader.term() !== null)
      leader.swept(sweep.sweepMs)
      return config.sweepMs
    },
    onError: news.trouble,
    errorPauseMs: config.sweepMs,
  })

  const askers = (outside?.duties ?? []).map((duty) =>
    loop({
      async turn(signal) {
        const isOurs = () => duty.isAnyones === true || leader.term() !== null
        if (!isOurs()) return config.sweepMs
        await runSweep(options.store, [duty], (outside as Outside).news, () => isOurs() && !signal.aborted, signal)
        // while another one leads, it is the likelier to know the owner
        return Math.max(config.sweepMs, duty.everyMs, leader.term() === null ? followerMs : 0)
      },
      onError: news.trouble,
      errorPauseMs: config.sweepMs,
    }),
  )

  return {
    term: leader.term,
    beatAt: () => beatAt,
    quiet: () => ({ sweeps: sweeper.quietMs(), leads: leader.quietMs() }),
    async start() {
      await leader.start()
      for (const one of [sweeper, ...askers]) await one.start()
    },
    async stop() {
      await Promise.all([sweeper, ...askers].map((one) => one.stop()))
      await leader.stop()
    },
  }
}

/** How often a process looks that does not lead. */
const followerMs = 2_000

/** Runs duties one after the other; a bad one does not block the others, and a deposed leader stops between two. */
export async function runSweep(
  store: Runner,
  due: readonly Duty[],
  news: ReaperNews,
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
        news.done(duty.name, report)
        recovered += report.revived.length + report.quarantined.length + report.healed.length
        failed += report.failed.length
        isFull = report.isFull
      }
    } catch (error) {
      failed += 1
      news.trouble(error, duty.name)
    }
  }
  const sweep = { sweepMs: performance.now() - startedMs, recovered, failed, isSystemic: failed > 0 && recovered === 0 }
  news.swept(sweep)
  return sweep
}
