/**
 * One leader at a time.
 *
 * The invariant: a process that acts as leader holds the current term, under a lease that has not expired by the database clock. The row
 * guarantees it: a term is taken only after the last lease has ended, and only its holder renews it. A process trusts a confirmed lease
 * until shortly before its end, counted on its own monotonic clock from when it sent the statement; after that it stops acting, even if
 * nobody told it to. Two leaders may still overlap for as long as one statement takes. That is harmless: the state machine guards every
 * duty, and every duty may run twice at once.
 *
 * For the same reason, a foreign transaction that locks the row stops nobody: if the row has had no leader for longer than an election
 * takes, and still cannot be taken, every candidate stands in for the leader until it can.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type Runner, tellingRunner } from '../postgres/store.ts'
import { monotonicMs } from '../service/clock.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { acquireLead, releaseLead, renewLead } from './leader.sql.ts'

/** A process that is leader, or waits to become it. */
export interface Leader extends Service {
  /** The term in which this process is leader; null while it is not. */
  term(): number | null
  /** How long this process has seen without a gap that another transaction locks the row; 0 unless it stands in for the leader. */
  watchedMs(): number
  /** Notes that a sweep is done; the next renewal writes it down. */
  swept(sweepMs: number): void
  /** How long its loop has shown no sign of life. */
  quietMs(): number
}

/** What a candidate needs. */
export interface LeaderOptions {
  store: Runner
  leaseMs: number
  renewMs: number
  /** Why this process can't perform the duties of a leader, if it can't. It then steps down, and lets others become leader for as long as a lease. */
  unfit?: () => string | undefined
  onElected: (term: number) => void
  onDeposed: (term: number, why: string) => void
  onError: (error: unknown) => void
}

/** Makes a candidate. */
export function makeLeader(options: LeaderOptions): Leader {
  return new Candidate(options)
}

interface Lead {
  term: number
  trustedUntilMs: number
  /** Whether this process acts as leader without holding the row, because a foreign transaction locks it. */
  isStandIn: boolean
}

class Candidate implements Leader {
  readonly #options: LeaderOptions
  readonly #store: Runner
  readonly #loop: Loop
  readonly #holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  /** The last tenth of a lease is not trusted, which leaves time for a statement that was just sent. */
  readonly #trustMs: number
  /** An election takes one lease and one attempt to acquire it; the rest is for slow answers. */
  readonly #vacantMs: number
  #sweepMs: number | null = null
  #lead: Lead | undefined
  /** Since when it has seen, without a gap, that the row can't be taken, and when it last did. */
  #watch: { sinceMs: number; seenMs: number } | undefined
  #restsUntilMs = 0

  constructor(options: LeaderOptions) {
    const { leaseMs, renewMs } = options
    this.#options = options
    this.#trustMs = leaseMs * 0.9
    this.#vacantMs = leaseMs + 2 * renewMs + 500
    this.#loop = loop({ turn: () => this.#turn(), onError: options.onError, errorPauseMs: renewMs })
    this.#store = tellingRunner(options.store, () => this.#loop.beat())
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    await this.#release('it stops')
  }

  term(): number | null {
    return this.#lead && monotonicMs() < this.#lead.trustedUntilMs ? this.#lead.term : null
  }

  watchedMs(): number {
    return this.#lead?.isStandIn && this.#watch ? monotonicMs() - this.#watch.sinceMs : 0
  }

  swept(sweepMs: number): void {
    this.#sweepMs = sweepMs
  }

  quietMs(): number {
    return this.#loop.quietMs()
  }

  async #turn(): Promise<number> {
    const { unfit, leaseMs, renewMs } = this.#options
    const why = unfit?.()
    if (why !== undefined) {
      this.#restsUntilMs = monotonicMs() + leaseMs
      await this.#release(why)
    } else if (monotonicMs() >= this.#restsUntilMs) {
      await this.#renew()
      if (!this.#lead || this.#lead.isStandIn) await this.#acquire()
    }
    return renewMs
  }

  async #renew(): Promise<void> {
    if (!this.#lead || this.#lead.isStandIn) return
    const { leaseMs, onError } = this.#options
    const sentAtMs = monotonicMs()
    const params = { holder: this.#holder, term: this.#lead.term, leaseMs, sweepMs: this.#sweepMs }
    try {
      // an answer that arrives after the lease has ended is useless
      const [renewed] = await this.#store.run(renewLead, params, leaseMs)
      this.#sweepMs = null
      if (renewed) this.#lead = { term: renewed.term, trustedUntilMs: sentAtMs + this.#trustMs, isStandIn: false }
      else this.#stepDown('the renewal was refused')
    } catch (error) {
      this.#stepDown('the renewal failed')
      onError(error)
    }
  }

  async #acquire(): Promise<void> {
    const sentAtMs = monotonicMs()
    // if it last saw the row long ago, what has happened since is unknown
    const watch = this.#watch && sentAtMs - this.#watch.seenMs <= this.#vacantMs ? this.#watch : undefined
    const sinceMs = watch?.sinceMs ?? sentAtMs
    const watchedMs = sentAtMs - sinceMs
    const params = { holder: this.#holder, leaseMs: this.#options.leaseMs, vacantMs: this.#vacantMs, watchedMs }
    const [found] = await this.#store.run(acquireLead, params)
    this.#watch = found?.is_taken === false ? { sinceMs, seenMs: sentAtMs } : undefined
    if (found && (found.is_taken || watchedMs >= this.#vacantMs)) this.#takeUp(found, sentAtMs)
    else if (this.#lead) this.#stepDown('the leader row is no longer locked')
  }

  #takeUp({ term, is_taken }: { term: number; is_taken: boolean }, sentAtMs: number): void {
    const isNew = !this.#lead || is_taken
    this.#lead = { term, trustedUntilMs: sentAtMs + this.#trustMs, isStandIn: !is_taken }
    if (isNew) this.#options.onElected(term)
  }

  #stepDown(why: string): void {
    const lead = this.#lead
    if (!lead) return
    this.#lead = undefined
    this.#options.onDeposed(lead.term, why)
  }

  /** Steps down and gives the lease back, so that the next leader need not wait for its end. */
  async #release(why: string): Promise<void> {
    const lead = this.#lead
    this.#stepDown(why)
    if (!lead || lead.isStandIn) return
    await this.#store.run(releaseLead, { holder: this.#holder, term: lead.term }).catch(this.#options.onError)
  }
}
