/**
 * The attempts that a worker holds. Each passes through three places in order:
 * - the prefetch buffer, while it waits for a free slot;
 * - the runner, while its handler runs;
 * - settling, until its outcome is written.
 * Until then it is held in the database in this worker's name.
 */
import type { Config } from '../config/config.ts'
import type { AbortReason, AnyJob } from '../job/define.ts'
import type { HeldFence } from '../job/id.ts'
import type { Flow } from '../job/middleware.ts'
import type { Store } from '../postgres/store.ts'
import { mostWeight } from '../service/group.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Settler } from '../settle/settle.ts'
import { type Attempt, heldFenceOf } from './attempt.ts'
import { AttemptRunner } from './attempt-runner.ts'
import type { ClaimedRow } from './claim-batch.ts'
import type { Taker } from './handover.ts'
import { PrefetchBuffer } from './prefetch-buffer.ts'
import type { PrefetchSize } from './prefetch-size.ts'
import type { Reports } from './progress.ts'
import type { Session } from './session.ts'
import { Settling } from './settling.ts'
import type { Unresponsive } from './unresponsive.ts'

/** The size of unwritten outputs at which no more handlers are started: a database that is slow must not fill the memory. */
const mostUnsettledBytes = 4 * mostWeight
/** The same for outcomes that wait for locked rows: they must not stop other jobs, but memory is finite. */
const mostLateBytes = 4 * mostUnsettledBytes

/** What an attempt pool needs. */
export interface AttemptPoolOptions {
  store: Store
  config: Config
  jobs: ReadonlyMap<string, AnyJob>
  flow: Flow
  session: Session
  settler: Settler
  reports: Reports
  prefetchSize: PrefetchSize
  taker: Taker
  unresponsive: Unresponsive
  onSettled: (attempt: Attempt, outcome: Outcome) => void
  onError: (error: unknown) => void
  /** There is room for more jobs. */
  onRoom: () => void
}

/** An attempt that no longer belongs to this worker, and the state in which its job ended, if it has ended. */
export interface LostAttempt {
  id: string
  attempt: number
  state: string | null
}

/** All attempts that a worker holds: waiting, running, or being settled. */
export class AttemptPool {
  readonly #options: AttemptPoolOptions
  readonly #buffer: PrefetchBuffer
  readonly #runner: AttemptRunner
  readonly #settling: Settling
  /** How many outcomes may wait for a database that is behind, and how many for rows that others have locked: only memory limits those. */
  readonly #mostUnsettled: number
  readonly #mostLate: number
  /** Whether the job claimed last is a suspect, which must be alone in its process. */
  #isAlone = false
  #isPumpScheduled = false
  #drainWaiters: (() => void)[] = []

  constructor(options: AttemptPoolOptions) {
    const { config, store, jobs, flow, reports, unresponsive, session } = options
    this.#options = options
    this.#mostUnsettled = 4 * config.batchSize
    this.#mostLate = 10 * this.#mostUnsettled
    this.#buffer = new PrefetchBuffer(options.taker, (prefetched) => session.tell({ prefetched }))
    this.#runner = new AttemptRunner({
      config,
      store,
      jobs,
      flow,
      reporter: reports,
      unresponsive,
      onEnded: (attempt, outcome) => this.#ended(attempt, outcome),
    })
    this.#settling = new Settling({
      settler: options.settler,
      reports,
      onSettled: options.onSettled,
      onWritten: () => this.#written(),
      onError: options.onError,
    })
  }

  /** The number of running handlers. */
  get running(): number {
    return this.#runner.size
  }

  /** Whether nothing is held in the database in this worker's name. */
  get isEmpty(): boolean {
    return this.#runner.size + this.#buffer.size + this.#settling.size === 0
  }

  /** Whether nothing is held but outcomes that wait for locked rows. That may take forever, and no handler runs for them. */
  get isIdle(): boolean {
    return this.#runner.size + this.#buffer.size + this.#settling.size === this.late
  }

  /** How many outcomes wait for locked rows. */
  get late(): number {
    return this.#options.settler.late.size
  }

  /** Whether a suspect is held. It counts until it is settled, or it would be blamed for what the next job does, but not for as long as a stranger likes. */
  get hasSuspect(): boolean {
    return this.#isAlone && !this.isIdle
  }

  /** Everything that is held in the database in this worker's name. */
  held(): HeldFence[] {
    return [...this.#buffer.rows().map(heldFenceOf), ...this.#runner.fences(), ...this.#settling.fences()]
  }

  /** How long the running handlers may still take according to their timeouts; 0 if none is running. */
  allowedMs(): number {
    return this.#runner.allowedMs()
  }

  /** How many more jobs to claim now. */
  room(): number {
    const { config, prefetchSize } = this.#options
    if (this.hasSuspect || this.#buffer.bytes > config.claimMaxBytes / 2) return 0
    const free = config.concurrency - this.#runner.size
    const target = Math.min(2 * config.batchSize, free + prefetchSize.ahead())
    const wanted = Math.min(config.batchSize, target - this.#buffer.size)
    // top up a nearly full buffer with one larger claim rather than with many small ones
    return wanted >= Math.min(config.batchSize, target / 2) ? wanted : 0
  }

  /** How many bytes of inputs and outputs to claim now. */
  roomBytes(): number {
    return this.#options.config.claimMaxBytes - this.#buffer.bytes
  }

  /** Adds claimed jobs. Jobs claimed for an earlier session are released instead. */
  take(rows: ClaimedRow[], how?: { isAlone: boolean }): void {
    if (rows.length > 0) this.#isAlone = how?.isAlone === true
    // all rows of a claim have one session; if it has ended in the meantime, they are about to be given to others
    if (rows[0] && rows[0].sessionId !== this.#options.session.id()) {
      this.#settling.release(rows)
      return
    }
    this.#buffer.push(rows, this.#buffer.size === 0 && this.#mayStart())
    this.#pump()
  }

  /** Enforces timeouts, and releases jobs that have waited too long for a slot. Called every `tickMs`. */
  tick(): void {
    const nowMs = performance.now()
    this.#runner.tick(nowMs)
    const oldestMs = nowMs - this.#options.config.holdMs
    this.#releaseWaiting((_, sinceMs) => sinceMs < oldestMs)
  }

  abortAll(reason: AbortReason): void {
    this.#runner.abort(() => reason)
  }

  /** Aborts attempts that no longer belong to this worker, and drops them if they haven't started. */
  abortLost(lost: LostAttempt[]): void {
    const reasons = new Map(
      lost.map((one) => [keyOf(one), one.state === 'cancelled' ? 'cancelled' : 'lease_lost'] as const),
    )
    this.#buffer.remove((row) => reasons.has(keyOf(row)))
    this.#schedulePump()
    this.#runner.abort(({ fence }) => reasons.get(keyOf(fence)))
  }

  /** Releases all jobs that wait for a slot. */
  releaseWaiting(): void {
    this.#releaseWaiting(() => true)
  }

  /** Releases waiting jobs that were claimed for an earlier session. */
  releaseForeign(): void {
    const own = this.#options.session.id()
    this.#releaseWaiting((row) => row.sessionId !== own)
  }

  /** Releases all running attempts. What their handlers return later is discarded. */
  releaseRunning(): void {
    this.#runner.releaseAll()
  }

  /** Tells a new heartbeat thread which jobs wait. */
  announceWaiting(): void {
    this.#buffer.announceAll()
  }

  /** Resolves when nothing is waiting or running. */
  drained(): Promise<void> {
    if (this.#isDrained()) return Promise.resolve()
    return new Promise((resolve) => this.#drainWaiters.push(resolve))
  }

  #isDrained(): boolean {
    return this.#runner.size + this.#buffer.size === 0
  }

  #mayStart(): boolean {
    const { config, settler, session } = this.#options
    const { size, bytes, late } = settler
    const isBehind = size - late.size >= this.#mostUnsettled || bytes - late.bytes >= mostUnsettledBytes
    const isStuck = late.size >= this.#mostLate || late.bytes >= mostLateBytes
    return this.#runner.size < config.concurrency && !isBehind && !isStuck && session.isHeld()
  }

  /** Starts waiting jobs while there are free slots. */
  #pump(): void {
    let started = 0
    while (this.#buffer.size > 0 && this.#mayStart()) {
      const row = this.#buffer.shift()
      if (!row) break
      this.#runner.start(row)
      started += 1
    }
    if (started > 0) this.#options.prefetchSize.started(started, performance.now())
    if (this.#isDrained()) this.#resolveDrained()
  }

  #schedulePump(): void {
    if (this.#isPumpScheduled) return
    this.#isPumpScheduled = true
    queueMicrotask(() => {
      this.#isPumpScheduled = false
      this.#pump()
      if (this.room() > 0) this.#options.onRoom()
    })
  }

  #ended(attempt: Attempt, outcome: Outcome): void {
    this.#settling.settle(attempt, outcome)
    this.#schedulePump()
  }

  #written(): void {
    if (this.#buffer.size > 0) this.#schedulePump()
    // a worker that is reserved for a suspect waits until its last attempt is settled
    if (this.isIdle) this.#options.onRoom()
  }

  #releaseWaiting(isUnwanted: (row: ClaimedRow, sinceMs: number) => boolean): void {
    this.#settling.release(this.#buffer.remove(isUnwanted))
    if (this.#isDrained()) this.#resolveDrained()
  }

  #resolveDrained(): void {
    const waiters = this.#drainWaiters
    this.#drainWaiters = []
    for (const resolve of waiters) resolve()
  }
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}
