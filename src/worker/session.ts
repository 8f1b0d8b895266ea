/**
 * The session of this process, as its main thread sees it.
 *
 * The invariant: by the time the database gives a session's jobs to other workers, this process has aborted them. Two
 * windows bound that time. Both start when the last confirmed heartbeat was sent:
 * - the lease, after which any worker may take the jobs;
 * - the shorter `lostAfterMs`, which applies only if the session's advisory lock is gone. The lock goes only if our
 *   connection is cut. A missing answer counts as a cut, because the server may have dropped us without our noticing.
 *   If the server's host died, its successor knows that it never held the lock, and waits for the lease.
 *
 * So this side aborts `abortMarginMs` before the window that applies. A process that is too frozen to do even that is
 * stopped by its fences.
 */
import { hostname } from 'node:os'
import type { Config } from '../config/config.ts'
import { type ErrorCode, HoldfastError } from '../errors/errors.ts'
import { priorities } from '../job/define.ts'
import { monotonicMs } from '../service/clock.ts'
import type { Service } from '../service/service.ts'
import { Heartbeat } from './heartbeat.ts'
import type { CommonTask, HeartbeatMessage, HeartbeatOrder } from './heartbeat-task.ts'
import type { Lane } from './lanes.ts'
import type { WorkerObserver } from './observer.ts'
import type { SessionFacts } from './session.sql.ts'

/** What a session needs. */
export interface SessionOptions {
  url: string
  isPooled: boolean
  config: Config
  /** What this process claims, as `lanesOf` returns it. */
  lanes: readonly Lane[]
  supervisor: string | null
  version: string
  /** The health of this process, which the heartbeat thread reads. */
  vitals: SharedArrayBuffer
  /** Decides which thread gets a prefetched job: the main thread or the heartbeat thread. */
  handover: SharedArrayBuffer
  observer: Pick<WorkerObserver, 'onError' | 'gaveBack' | 'threadDied' | 'failed'>
  /** The lease is in doubt or gone: abort everything now. */
  onDoubt: () => void
  /** A heartbeat was refused: the session was ended, and all its attempts were given to others. */
  onRefused: () => void
  /** The lease is valid (again). If the session has a new id, all earlier attempts are lost. */
  onHeld: () => void
  /** A new heartbeat thread was started. It knows nothing of what its predecessor was told. */
  onThreadStarted: () => void
  /** The URL leads through a transaction pooler, although the setting `pooled` is off. */
  onPooled: () => void
}

/** The lease of this process, which covers all its attempts. `start` resolves once the database has confirmed it. */
export class Session implements Service {
  readonly #options: SessionOptions
  readonly #task: CommonTask
  readonly #heartbeat: Heartbeat
  #id = 0
  /** The session that the next heartbeat thread resumes: opened, but perhaps not confirmed yet. */
  #openedId: number | null = null
  #confirmedAtMs = Number.NEGATIVE_INFINITY
  #isCut = false
  #isHeld = false
  #timer: NodeJS.Timeout | undefined
  #starting: Promise<void> | undefined
  #resolveStart: (() => void) | undefined
  #rejectStart: ((error: Error) => void) | undefined

  constructor(options: SessionOptions) {
    this.#options = options
    this.#task = taskOf(options)
    this.#heartbeat = new Heartbeat({
      task: this.#task,
      sessionId: () => this.#openedId,
      onMessage: (message) => this.#hear(message),
      onStarted: options.onThreadStarted,
      onLost: (why) => this.#threadLost(why),
      onFailed: (error) => this.#failed(error),
    })
  }

  /** The id of the current session; 0 before there is one. */
  id(): number {
    return this.#id
  }

  /** Whether the lease is certainly valid, by this process's own monotonic clock. */
  isHeld(): boolean {
    return this.#isHeld && this.#heldForMs() > 0
  }

  /** How long the heartbeat thread has given no sign of life, regardless of the state of the database. */
  quietMs(): number {
    return this.#heartbeat.quietMs()
  }

  /** Sends something to the heartbeat thread. */
  tell(order: Exclude<HeartbeatOrder, 'stop'>): void {
    this.#heartbeat.order(order)
  }

  start(): Promise<void> {
    this.#starting ??= this.#begin()
    return this.#starting
  }

  async stop(): Promise<void> {
    if (!this.#starting) return
    this.#rejectStart?.(new HoldfastError('not_running', 'The session ended before the database confirmed it.'))
    await this.#heartbeat.stop()
    clearTimeout(this.#timer)
    this.#isHeld = false
  }

  #begin(): Promise<void> {
    const held = new Promise<void>((resolve, reject) => {
      this.#resolveStart = resolve
      this.#rejectStart = reject
    })
    this.#heartbeat.start()
    return held
  }

  #hear(message: HeartbeatMessage): void {
    const { observer } = this.#options
    if (message.type === 'opened') this.#openedId = message.id
    if (message.type === 'confirmed') this.#confirmed(message.id, message.sentAtMs)
    if (message.type === 'cut') this.#cut()
    if (message.type === 'pooled') this.#pooled()
    if (message.type === 'ended') this.#ended()
    if (message.type === 'gaveBack') observer.gaveBack(message.count, message.blockedMs)
    if (message.type === 'error') observer.onError(errorOf(message), 'heartbeat')
  }

  #confirmed(id: number, sentAtMs: number): void {
    this.#id = id
    this.#confirmedAtMs = sentAtMs
    this.#isCut = false
    this.#checkLease()
    if (this.#isHeld || this.#heldForMs() <= 0) return
    this.#isHeld = true
    this.#options.onHeld()
    this.#resolveStart?.()
  }

  /** The heartbeat's connection is cut, or about to be. */
  #cut(): void {
    this.#isCut = true
    this.#checkLease()
  }

  #pooled(): void {
    // until the next heartbeat says that there is no lock, its loss could shorten the lease
    this.#cut()
    this.#task.isPooled = true
    this.#options.onPooled()
  }

  #ended(): void {
    this.#openedId = null
    this.#options.onRefused()
    this.#doubt()
  }

  #threadLost(why: string): void {
    this.#cut()
    this.#options.observer.threadDied(why)
  }

  #failed(error: HoldfastError): void {
    // no later heartbeat can be confirmed, so there is no point in waiting for the lease to expire
    this.#doubt()
    this.#rejectStart?.(error)
    this.#options.observer.failed(error)
  }

  #heldForMs(): number {
    const { config } = this.#options
    const windowMs = this.#isCut ? config.lostAfterMs : config.leaseMs
    return this.#confirmedAtMs + windowMs - config.abortMarginMs - monotonicMs()
  }

  #checkLease(): void {
    clearTimeout(this.#timer)
    const leftMs = this.#heldForMs()
    if (leftMs > 0) this.#timer = setTimeout(() => this.#checkLease(), leftMs)
    // after a handler blocked this thread, messages about many heartbeats are queued: process them before deciding
    else setImmediate(() => this.#doubtIfOver())
  }

  #doubtIfOver(): void {
    if (this.#heldForMs() <= 0) this.#doubt()
  }

  #doubt(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#options.onDoubt()
  }
}

function taskOf(options: SessionOptions): CommonTask {
  const { url, isPooled, config, vitals, handover } = options
  const { heartbeatMs, abortMarginMs, holdMs } = config
  return { url, isPooled, heartbeatMs, abortMarginMs, holdMs, vitals, handover, facts: factsOf(options) }
}

function factsOf({ supervisor, version, config, lanes }: SessionOptions): SessionFacts {
  // the lanes of one priority: each kind, with the queue in which it is served
  const served = lanes.slice(0, lanes.length / priorities.length)
  return {
    pid: process.pid,
    host: hostname(),
    supervisor,
    version,
    kinds: served.map(({ kind }) => kind),
    queues: served.map(({ queue }) => queue),
    concurrency: config.concurrency,
    leaseMs: config.leaseMs,
    lostAfterMs: config.lostAfterMs,
  }
}

/** An error of the heartbeat thread. It has no stack, because that would be one of this thread. */
function errorOf({ code, message }: { code: ErrorCode | null; message: string }): Error {
  const error = code ? new HoldfastError(code, message) : new Error(message)
  delete error.stack
  return error
}
