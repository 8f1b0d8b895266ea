/**
 * The worker: claims jobs ahead of time, runs their handlers, and settles the outcomes in batches.
 *
 * It claims as many jobs as it can start within a moment, going by the rate it has just seen. So short jobs share the
 * round trip of a claim, while long ones are left to workers that are free. Jobs that it couldn't start within `holdMs`
 * it releases.
 *
 * Its parts, each of which uses only those before it:
 * - the session: the lease of this process, renewed by the heartbeat thread;
 * - the attempt pool: the jobs that this worker holds, whether they wait, run or are being settled;
 * - the lost attempts: aborts what the pool holds but the database has given to others;
 * - the claimer: fills the pool with due jobs.
 * What concerns a later part is announced by a callback, and one of the `#on…` methods below passes it on.
 */
import { type Bus, type Channel, listen } from '../bus/bus.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { Flow } from '../job/middleware.ts'
import type { Store } from '../postgres/store.ts'
import { type Service, within } from '../service/service.ts'
import type { Outcome } from '../settle/outcome.ts'
import { makeSettler, type Settler } from '../settle/settle.ts'
import type { Attempt } from './attempt.ts'
import { AttemptPool } from './attempt-pool.ts'
import { tickMs } from './attempt-runner.ts'
import { Claimer } from './claimer.ts'
import { handoverMemory, Taker } from './handover.ts'
import { registerJobs } from './kinds.ts'
import { type Lane, lanesOf } from './lanes.ts'
import { LostAttempts } from './lost-attempts.ts'
import type { WorkerObserver } from './observer.ts'
import { makePrefetchSize, type PrefetchSize } from './prefetch-size.ts'
import { Reports } from './progress.ts'
import { Session } from './session.ts'
import { Unresponsive } from './unresponsive.ts'
import { vitalsMemory, writeVitals } from './vitals.ts'

/** What a worker needs. */
export interface WorkerOptions {
  store: Store
  url: string
  isPooled: boolean
  config: Config
  jobs: readonly AnyJob[]
  /** The name of the process that started this one and notices when it exits, if there is one. */
  supervisor: string | null
  version: string
  /** The middleware around handlers. */
  flow: Flow
  observer: WorkerObserver
}

/** A worker of this process. `start` resolves once its session is confirmed and it claims; `stop` drains first. */
export class Worker implements Service {
  readonly #options: WorkerOptions
  readonly #vitals = vitalsMemory()
  readonly #handover = handoverMemory()
  readonly #taker = new Taker(this.#handover)
  readonly #givenUp = new AbortController()
  readonly #session: Session
  readonly #unresponsive: Unresponsive
  readonly #settler: Settler
  readonly #reports: Reports
  readonly #attemptPool: AttemptPool
  readonly #lostAttempts: LostAttempts
  readonly #bus: Bus
  readonly #claimer: Claimer
  /** Whether notifications don't arrive because the URL leads through a pooler. */
  #isDeaf: boolean
  #ticker: NodeJS.Timeout | undefined
  #stopping: Promise<void> | undefined

  constructor(options: WorkerOptions) {
    const { store, config, observer } = options
    const { onError } = observer
    const lanes = lanesOf(options.jobs, config.queues)
    const prefetchSize = makePrefetchSize()
    this.#options = options
    this.#isDeaf = options.isPooled
    this.#session = this.#makeSession(lanes)
    this.#unresponsive = new Unresponsive({
      session: this.#session,
      observer,
      most: config.maxUnresponsive,
      onTooMany: (error) => this.#onTooManyUnresponsive(error),
    })
    this.#settler = makeSettler({
      store,
      batchSize: config.batchSize,
      givenUp: this.#givenUp.signal,
      onRefused: (fences, write) => this.#lostAttempts.refused(fences, write),
      onError,
    })
    this.#reports = new Reports({
      store,
      onRefused: (fences, write) => this.#lostAttempts.refusedUnrecorded(fences, write),
      onError,
    })
    this.#attemptPool = this.#makeAttemptPool(prefetchSize)
    this.#lostAttempts = new LostAttempts({
      store,
      attemptPool: this.#attemptPool,
      everyMs: config.heartbeatMs,
      observer,
    })
    this.#bus = this.#listen()
    this.#claimer = new Claimer({
      ...options,
      lanes,
      session: this.#session,
      attemptPool: this.#attemptPool,
      prefetchSize,
      taker: this.#taker,
      isBusConnected: () => this.#bus.isConnected() && !this.#isDeaf,
      onError,
    })
  }

  sessionId(): number {
    return this.#session.id()
  }

  /** Whether its lease is certainly valid. */
  isHeld(): boolean {
    return this.#session.isHeld()
  }

  /** The number of running handlers. */
  running(): number {
    return this.#attemptPool.running
  }

  /** How long each of its loops has given no sign of life, regardless of the state of the database. */
  quiet(): { claims: number; watches: number; heartbeat: number } {
    return {
      claims: this.#claimer.quietMs(),
      watches: this.#lostAttempts.quietMs(),
      heartbeat: this.#session.quietMs(),
    }
  }

  /** How long the running handlers may still take according to their timeouts; 0 if none is running. */
  allowedMs(): number {
    return this.#attemptPool.allowedMs()
  }

  async start(): Promise<void> {
    if (this.#ticker) return
    this.#ticker = setInterval(() => this.#tick(), tickMs)
    const { store, config, jobs } = this.#options
    await registerJobs(store, config, jobs)
    if (this.#stopping) throw new HoldfastError('not_running', 'The worker was stopped while it was starting.')
    await this.#session.start()
    await Promise.all([
      this.#isDeaf ? undefined : this.#bus.start(),
      this.#reports.start(),
      this.#lostAttempts.start(),
      this.#claimer.start(),
    ])
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop(this.#options.config.drainMs)
    return this.#stopping
  }

  /** Stops without letting handlers finish: for a worker that has permanently lost its session. */
  halt(): Promise<void> {
    this.#stopping ??= this.#stop(0)
    return this.#stopping
  }

  /** Stops claiming, lets handlers finish, releases the remaining jobs, and only then gives up the lease. */
  async #stop(drainMs: number): Promise<void> {
    await Promise.all([this.#claimer.stop(), this.#bus.stop()])
    await this.#drain(drainMs)
    await this.#settleAll()
    await this.#lostAttempts.stop()
    await this.#session.stop()
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  async #drain(drainMs: number): Promise<void> {
    const pool = this.#attemptPool
    pool.releaseWaiting()
    await within(drainMs, pool.drained())
    pool.abortAll('shutdown')
    await within(Math.min(1_000, this.#options.config.drainMs), pool.drained())
    pool.releaseRunning()
  }

  async #settleAll(): Promise<void> {
    // an outcome waits for its attempt's reports, so the settler is idle only after those
    await this.#reports.stop()
    // don't wait forever for a database that doesn't come back; the reaper revives what is left
    if (!(await within(this.#options.config.leaseMs, this.#settler.idle()))) this.#givenUp.abort()
    await this.#settler.idle()
  }

  #tick(): void {
    this.#attemptPool.tick()
    writeVitals(this.#vitals, {
      isClaiming: !this.#stopping,
      busy: this.#attemptPool.running,
      unresponsive: this.#unresponsive.size,
    })
  }

  #makeSession(lanes: Lane[]): Session {
    return new Session({
      ...this.#options,
      lanes,
      vitals: this.#vitals,
      handover: this.#handover,
      onDoubt: () => this.#onDoubt(),
      onRefused: () => this.#lostAttempts.refusedUnrecorded(this.#attemptPool.held(), 'heartbeat'),
      onHeld: () => this.#onHeld(),
      onThreadStarted: () => this.#onThreadStarted(),
      onPooled: () => this.#onPooled(),
    })
  }

  #makeAttemptPool(prefetchSize: PrefetchSize): AttemptPool {
    const { jobs, observer } = this.#options
    return new AttemptPool({
      ...this.#options,
      jobs: new Map(jobs.map((job) => [job.kind, job])),
      session: this.#session,
      settler: this.#settler,
      reports: this.#reports,
      prefetchSize,
      taker: this.#taker,
      unresponsive: this.#unresponsive,
      onSettled: (attempt, outcome) => this.#onSettled(attempt, outcome),
      onRoom: () => this.#claimer.roomFreed(),
      onError: observer.onError,
    })
  }

  #listen(): Bus {
    return listen({
      url: this.#options.url,
      channels: ['holdfast_wake', 'holdfast_abort'],
      onNews: (channel, payload) => this.#onNotified(channel, payload),
      onGap: () => this.#claimer.wake(),
      onError: this.#options.observer.onError,
    })
  }

  #onDoubt(): void {
    this.#options.observer.doubted()
    this.#attemptPool.abortAll('lease_lost')
    this.#attemptPool.releaseWaiting()
  }

  #onHeld(): void {
    this.#attemptPool.releaseForeign()
    this.#claimer.leaseHeld()
  }

  #onThreadStarted(): void {
    this.#taker.forgetClaim()
    this.#attemptPool.announceWaiting()
    this.#unresponsive.announce()
  }

  #onPooled(): void {
    // a listener behind a pooler hears nothing, but while it counts as connected, the claimer polls less often
    this.#isDeaf = true
    this.#options.observer.pooled()
    void this.#bus.stop()
  }

  #onNotified(channel: Channel, payload: string): void {
    if (channel === 'holdfast_wake') this.#claimer.wake()
    else if (payload === String(this.#session.id())) this.#lostAttempts.wake()
  }

  #onSettled(attempt: Attempt, outcome: Outcome): void {
    this.#options.observer.settled(attempt, outcome)
    if (['advance', 'retry', 'snooze'].includes(outcome.move)) this.#claimer.wake()
  }

  #onTooManyUnresponsive(error: HoldfastError): void {
    if (!this.#stopping) this.#options.observer.wornOut(error)
  }
}
