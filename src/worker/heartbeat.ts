/**
 * Keeps one heartbeat thread running.
 *
 * The invariant: while the worker runs, either a thread beats, or another one is about to start, or the owner was told that the worker
 * has failed. A thread that dies takes its connection along, and with it the session's lock, so its death counts as a cut connection: the
 * next thread resumes the session if it is back in time. A thread that is silent still holds the lock; it is ended only once the handlers
 * had `abortMarginMs` to stop, because from then on their jobs may be given away.
 */
import { Worker } from 'node:worker_threads'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { within } from '../service/service.ts'
import { type HeartbeatNews, type HeartbeatOrder, type HeartbeatTask, longestStepMs } from './heartbeat-task.ts'

/** What a heartbeat needs. */
export interface HeartbeatOptions {
  task: Omit<HeartbeatTask, 'sessionId'>
  /** The session that the next thread resumes, if there is one. */
  sessionId: () => number | null
  onNews: (news: HeartbeatNews) => void
  /** A thread was started, which knows nothing of what its predecessors were told. */
  onStarted: () => void
  /** The thread died, or is about to be ended: its connection is as good as cut. */
  onLost: (why: string) => void
  /** Too many threads died; there will be no other. */
  onFailed: (error: HoldfastError) => void
}

/** So many deaths within so long end the worker. */
export const mostDeaths = 4
const deathsWithinMs = 60_000
const firstPauseMs = 50
const stopMs = 3_000
// what a thread may take longer than its longest step: a machine that is short of processors
const slackMs = 2_500
const looksPerSilence = 5
// the thread needs about a tenth of it: a leak must end the thread, not the process
const heapMb = 128

/** The heartbeat threads of a session, one after the other. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #silenceMs: number
  #thread: Worker | undefined
  #closed: Promise<void> = Promise.resolve()
  #deathsAtMs: number[] = []
  #timer: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined
  #newsAtMs = performance.now()
  #quietLooks = 0
  #isCondemned = false
  #isStopping = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#silenceMs = longestStepMs(options.task) + slackMs
  }

  /** How long no thread has given a sign of life. */
  quietMs(): number {
    return this.#watch ? performance.now() - this.#newsAtMs : 0
  }

  start(): void {
    if (this.#thread || this.#isStopping) return
    this.#newsAtMs = performance.now()
    this.#watch ??= setInterval(() => this.#look(), this.#silenceMs / looksPerSilence)
    this.#begin()
  }

  /** Tells the thread something. If there is none at the moment, `onStarted` is the time to tell the next one. */
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
    const workerData: HeartbeatTask = { ...this.#options.task, sessionId: this.#options.sessionId() }
    const thread = new Worker(new URL('./heartbeat-thread.js', import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    this.#thread = thread
    this.#quietLooks = 0
    this.#isCondemned = false
    let why: string | undefined
    thread.on('message', (news: HeartbeatNews) => this.#hear(thread, news))
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

  #hear(thread: Worker, news: HeartbeatNews): void {
    // what a condemned thread still says counts no more: a lease that it confirms would outlast its lock
    if (thread !== this.#thread || this.#isCondemned) return
    this.#newsAtMs = performance.now()
    this.#quietLooks = 0
    this.#options.onNews(news)
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
        `The heartbeat thread died ${mostDeaths} times within a minute, the last time because ${why}. This worker has stopped; its process should be replaced.`,
      ),
    )
  }

  /**
   * Counts looks, not time: after a freeze of the whole process, or a handler that blocked this thread, one look comes late and the news
   * that waits is heard right after it.
   */
  #look(): void {
    if (!this.#thread || this.#isCondemned) return
    this.#quietLooks += 1
    if (this.#quietLooks > looksPerSilence) this.#condemn(this.#thread)
  }

  #condemn(thread: Worker): void {
    const why = `it was silent for ${Math.round(this.quietMs())} ms`
    this.#isCondemned = true
    this.#options.onLost(why)
    this.#timer = setTimeout(() => {
      void thread.terminate()
      // one that hangs outside of JavaScript cannot be ended, but must not keep another from beating
      this.#timer = setTimeout(() => this.#exited(thread, why), stopMs)
    }, this.#options.task.abortMarginMs)
  }
}
