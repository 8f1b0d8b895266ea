import type { Config } from '../config/config.ts'
import type { AbortReason, AnyJob } from '../job/define.ts'
import type { HeldFence } from '../job/id.ts'
import type { Flow } from '../job/middleware.ts'
import type { Store } from '../postgres/store.ts'
import type { Outcome } from '../settle/outcome.ts'
import { type Attempt, attemptMaker } from './attempt.ts'
import { type ClaimedRow, dropTexts } from './claim-batch.ts'
import { failure, timeoutError } from './conclude.ts'
import { type HandlerParts, type Reporter, runHandler } from './handler.ts'
import { Parents } from './parents.ts'
import { beginAttempt } from './span.ts'
import type { Unresponsive } from './unresponsive.ts'

/** What it takes to run attempts. */
export interface AttemptRunnerOptions {
  config: Config
  store: Store
  jobs: ReadonlyMap<string, AnyJob>
  flow: Flow
  reporter: Reporter
  unresponsive: Unresponsive
  /** The outcome of an attempt is decided, and its slot is free. Called once per attempt. */
  onEnded: (attempt: Attempt, outcome: Outcome) => void
}

/** How often `tick` is to be called. */
export const tickMs = 50

/** Runs handlers and enforces their timeouts. */
export class AttemptRunner {
  readonly #options: AttemptRunnerOptions
  readonly #handlerParts: HandlerParts
  readonly #makeAttempt: (job: AnyJob, row: ClaimedRow) => Attempt
  readonly #running = new Set<Attempt>()
  #tickedAtMs = performance.now()

  constructor(options: AttemptRunnerOptions) {
    const { config, store, flow, reporter } = options
    this.#options = options
    this.#handlerParts = { config, store, flow, reporter, parents: new Parents(store) }
    this.#makeAttempt = attemptMaker(config)
  }

  /** The number of handlers that take a slot. */
  get size(): number {
    return this.#running.size
  }

  fences(): HeldFence[] {
    return [...this.#running].map(({ fence }) => fence)
  }

  start(row: ClaimedRow): void {
    const attempt = this.#makeAttempt(this.#options.jobs.get(row.kind) as AnyJob, row)
    attempt.startedAtMs = performance.now()
    attempt.span = beginAttempt(attempt)
    this.#running.add(attempt)
    const run = () => runHandler(this.#handlerParts, attempt)
    void (attempt.span ? attempt.span.run(run) : run()).then((outcome) => this.#returned(attempt, outcome))
  }

  /** Aborts the attempts for which this returns a reason. */
  abort(reasonOf: (attempt: Attempt) => AbortReason | undefined): void {
    const nowMs = performance.now()
    for (const attempt of this.#running) {
      const reason = reasonOf(attempt)
      if (reason) attempt.abort(reason, nowMs)
    }
  }

  /** Releases all running attempts. What their handlers return later is discarded. */
  releaseAll(): void {
    for (const attempt of this.#running) this.#end(attempt, { move: 'release' })
  }

  /** Aborts handlers that exceeded their timeout, and gives up on those that ignored their signal for too long. */
  tick(nowMs: number): void {
    const lateMs = nowMs - this.#tickedAtMs - 2 * tickMs
    this.#tickedAtMs = nowMs
    if (lateMs > 0) this.#extendGrace(lateMs)
    for (const attempt of this.#running) this.#enforceTimeout(attempt, nowMs)
  }

  /** How long the running handlers may still take according to their timeouts; 0 if none is running. */
  allowedMs(): number {
    if (this.#running.size === 0) return 0
    const nowMs = performance.now()
    let longestMs = 0
    for (const { startedAtMs, allowance } of this.#running)
      longestMs = Math.max(longestMs, startedAtMs + allowance.timeoutMs - nowMs)
    return longestMs + this.#options.config.timeoutGraceMs
  }

  #returned(attempt: Attempt, outcome: Outcome): void {
    // thousands of attempts may wait for their outcome to be written
    dropTexts(attempt.row)
    if (attempt.isOver) this.#options.unresponsive.remove(attempt)
    else this.#end(attempt, outcome)
  }

  #end(attempt: Attempt, outcome: Outcome): void {
    attempt.isOver = true
    this.#running.delete(attempt)
    this.#options.onEnded(attempt, outcome)
  }

  /** Handlers can't react while another one blocks the event loop, so that time isn't part of their grace period. */
  #extendGrace(lateMs: number): void {
    for (const attempt of this.#running) if (attempt.abortedBy !== undefined) attempt.abortedAtMs += lateMs
  }

  #enforceTimeout(attempt: Attempt, nowMs: number): void {
    if (attempt.abortedBy === undefined && nowMs - attempt.startedAtMs >= attempt.allowance.timeoutMs)
      attempt.abort('timeout', nowMs)
    if (attempt.abortedBy !== undefined && nowMs - attempt.abortedAtMs >= this.#options.config.timeoutGraceMs)
      this.#giveUpOn(attempt, nowMs)
  }

  /** Frees the slot of a handler that ignores its signal, whatever the reason for the abort: it may never return. */
  #giveUpOn(attempt: Attempt, nowMs: number): void {
    const isTimeout = attempt.abortedBy === 'timeout'
    this.#end(attempt, isTimeout ? failure(attempt, timeoutError(attempt)) : { move: 'release' })
    this.#options.unresponsive.add(attempt, nowMs)
  }
}
