/**
 * Keeps one heartbeat thread running.
 *
 * The invariant: while the worker runs, a thread beats, or another one is about to start, or the owner knows that the
 * worker has failed. A thread that dies takes its connection with it, and so the session's lock. Its death therefore
 * counts as a cut connection, and the next thread resumes the session if it is in time. A silent thread still holds the
 * lock. It is terminated only after the handlers had `abortMarginMs` to stop, because from then on their jobs may be
 * given to others.
 */
import { Worker } from 'node:worker_threads'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { within } from '../service/service.ts'
import {
  type CommonTask,
  type HeartbeatMessage,
  type HeartbeatOrder,
  type HeartbeatTask,
  longestStepMs,
} from './heartbeat-task.ts'

/** What a heartbeat needs. */
export interface HeartbeatOptions {
  task: CommonTask
  /** The session that the next thread resumes, if there is one. */
  sessionId: () => number | null
  onMessage: (message: HeartbeatMessage) => void
  /** A thread was started. It knows nothing of what its predecessors were told. */
  onStarted: () => void
  /** The thread died, or is about to be terminated: treat its connection as lost. */
  onLost: (why: string) => void
  /** Too many threads died, and no other will be started. */
  onFailed: (error: HoldfastError) => void
}

/** This many deaths within `deathsWithinMs` end the worker. */
export const mostDeaths = 4
const deathsWithinMs = 60_000
const firstPauseMs = 50
const stopMs = 3_000
// how much longer than its longest step a thread may take on an overloaded machine
const slackMs = 2_500
const checksPerSilence = 5
// how much more time a thread gets for its first message: until then it loads its code, which takes long on an overloaded machine, and
// replacing it would start that from the beginning
const startFactor = 8
// about ten times what the thread needs: a leak must kill the thread, not the process
const heapMb = 128

/** A thread inherits the flags of its process, but refuses `--input-type`, because it runs a file. */
function ownFlags(): { execArgv?: string[] } {
  return process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {}
}

/** The heartbeat threads of a session, one after the other. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #silenceMs: number
  #thread: Worker | undefined
  #closed: Promise<void> = Promise.resolve()
  #deathsAtMs: number[] = []
  #timer: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined
  #messageAtMs = performance.now()
  #silentChecks = 0
  #mostSilentChecks = checksPerSilence
  #isCondemned = false
  #isStopping = false
  /** Lost sessions, until a thread says that the database knows. */
  readonly #lost = new Set<number>()

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#silenceMs = longestStepMs(options.task) + slackMs
  }

  /** How long there has been no message from a thread. */
  quietMs(): number {
    return this.#watch ? performance.now() - this.#messageAtMs : 0
  }

  start(): void {
    if (this.#thread || this.#isStopping) return
    this.#messageAtMs = performance.now()
    this.#watch ??= setInterval(() => this.#check(), this.#silenceMs / checksPerSilence)
    this.#begin()
  }

  /** Sends something to the thread. If there is none at the moment, `onStarted` is the time to tell the next one. */
  order(order: Exclude<HeartbeatOrder, 'stop'>): void {
    this.#thread?.postMessage(order)
  }

  /** Asks the thread to close the session, and waits until it is gone. */
  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#timer)
    clearInterval(this.#watch)
    const thread = this.#thread
    thread?.postMessage('stop' satisfies HeartbeatOrder)
    if (await within(this.#isCondemned ? 0 : stopMs, this.#closed)) return
    void thread?.terminate()
    await within(stopMs, this.#closed)
  }

  #begin(): void {
    const workerData: HeartbeatTask = {
      ...this.#options.task,
      sessionId: this.#options.sessionId(),
      lost: [...this.#lost],
    }
    const thread = new Worker(new URL('./heartbeat-thread.js', import.meta.url), {
      workerData,
      ...ownFlags(),
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    this.#thread = thread
    this.#silentChecks = 0
    this.#mostSilentChecks = startFactor * checksPerSilence
    this.#isCondemned = false
    let why: string | undefined
    thread.on('message', (message: HeartbeatMessage) => this.#hear(thread, message))
    thread.on('error', (error) => {
      why = messageOf(error)
    })
    this.#closed = new Promise((resolve) => {
      thread.once('exit', (code) => {
        this.#exited(thread, why ?? `it exited with code ${code}`)
        resolve()
      })
    })
    this.#options.onStarted()
  }

  #hear(thread: Worker, message: HeartbeatMessage): void {
    // ignore what a condemned thread still says: a lease that it confirms would outlast its lock
    if (thread !== this.#thread || this.#isCondemned) return
    this.#messageAtMs = performance.now()
    this.#silentChecks = 0
    this.#mostSilentChecks = checksPerSilence
    if (message.type === 'ended') this.#lost.add(message.id)
    if (message.type === 'outlived') this.#lost.delete(message.id)
    this.#options.onMessage(message)
  }

  #exited(thread: Worker, why: string): void {
    if (thread !== this.#thread) return
    this.#thread = undefined
    if (this.#isStopping) return
    if (!this.#isCondemned) this.#options.onLost(why)
    const nowMs = performance.now()
    this.#deathsAtMs = [...this.#deathsAtMs.filter((atMs) => nowMs - atMs < deathsWithinMs), nowMs]
    const deaths = this.#deathsAtMs.length
    if (deaths >= mostDeaths) this.#fail(why)
    else this.#timer = setTimeout(() => this.#begin(), firstPauseMs * 2 ** (deaths - 1))
  }

  #fail(why: string): void {
    this.#isStopping = true
    clearInterval(this.#watch)
    this.#options.onFailed(
      new HoldfastError(
        'worker_failed',
        `The heartbeat thread died ${mostDeaths} times within a minute, most recently because ${why}. This worker has stopped. Replace its process.`,
      ),
    )
  }

  /**
   * Counts checks, not time: after the whole process was frozen, or a handler blocked this thread, only one check is
   * late, and the messages that have queued up are processed right after it.
   */
  #check(): void {
    if (!this.#thread || this.#isCondemned) return
    this.#silentChecks += 1
    if (this.#silentChecks > this.#mostSilentChecks) this.#condemn(this.#thread)
  }

  #condemn(thread: Worker): void {
    const why = `it was silent for ${Math.round(this.quietMs())} ms`
    this.#isCondemned = true
    this.#options.onLost(why)
    this.#timer = setTimeout(() => {
      void thread.terminate()
      // a thread that hangs outside of JavaScript can't be terminated, but must not prevent another from beating
      this.#timer = setTimeout(() => this.#exited(thread, why), stopMs)
    }, this.#options.task.abortMarginMs)
  }
}
