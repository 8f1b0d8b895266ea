/**
 * The session of this process, as the main thread sees it.
 *
 * The invariant: the database gives a session's jobs away only at a moment when this process has already aborted them. Two
 * windows bound that moment, both counted from the sending of the last confirmed heartbeat:
 * - the lease, after which anybody may take the jobs;
 * - the shorter `lostAfterMs`, which holds only if the session's lock is gone, and the lock can go only if our
 *   connection is cut. An answer that stays out counts as a cut, for the server may have dropped us unseen. If its whole host
 *   died, the new server knows that it never held the lock, and waits for the lease.
 * So this side aborts `abortMarginMs` before the window that applies. A process too frozen to do even that is fenced.
 */
import { Worker } from 'node:worker_threads'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import type { HeartbeatNews, HeartbeatTask } from './heartbeat-thread.ts'
import type { SessionFacts } from './session.sql.ts'

/** The lease of this process over all its attempts. */
export interface Session extends Service {
  /** The id of the present session. */
  id(): number
  /** Whether the lease certainly stands, by this process's own monotonic clock. */
  isHeld(): boolean
}

/** What a session needs. */
export interface SessionOptions {
  url: string
  isPooled: boolean
  config: Config
  facts: Omit<SessionFacts, 'leaseMs' | 'lostAfterMs'>
  /** The lease is in doubt or gone: abort everything now. */
  onDoubt: () => void
  /** A heartbeat was refused: the session was ended, and all its attempts were given away. */
  onRefused: () => void
  /** The lease stands (again); a fresh session id means that all earlier attempts are lost. */
  onHeld: (id: number) => void
  onTrouble: (message: string) => void
}

const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000

/** Makes the session of this process. `start` resolves once the database has confirmed it. */
export function makeSession(options: SessionOptions): Session {
  const { config } = options
  let thread: Worker | undefined
  let id: number | undefined
  let confirmedAtMs = Number.NEGATIVE_INFINITY
  let isCut = false
  let isHeld = false
  let timer: NodeJS.Timeout | undefined
  let closed: Promise<void> | undefined
  let firstHeld: (() => void) | undefined
  let neverHeld: ((error: Error) => void) | undefined

  function heldForMs(): number {
    const window = isCut ? config.lostAfterMs : config.leaseMs
    return confirmedAtMs + window - config.abortMarginMs - monotonicMs()
  }

  function check(): void {
    clearTimeout(timer)
    const leftMs = heldForMs()
    if (leftMs > 0) timer = setTimeout(check, leftMs)
    // after a handler that blocked this thread, news of many heartbeats waits behind this: hear all of it before judging
    else setImmediate(judge)
  }

  function judge(): void {
    if (heldForMs() <= 0) doubt()
  }

  function doubt(): void {
    if (!isHeld) return
    isHeld = false
    options.onDoubt()
  }

  function hear(news: HeartbeatNews): void {
    if (news.news === 'confirmed') {
      id = news.id
      confirmedAtMs = news.sentAtMs
      isCut = false
      check()
      if (isHeld || heldForMs() <= 0) return
      isHeld = true
      options.onHeld(id)
      firstHeld?.()
    }
    if (news.news === 'cut') {
      isCut = true
      check()
    }
    if (news.news === 'ended') {
      options.onRefused()
      doubt()
    }
    if (news.news === 'trouble') options.onTrouble(news.message)
  }

  function begin(): Promise<void> {
    const task: HeartbeatTask = {
      url: options.url,
      isPooled: options.isPooled,
      heartbeatMs: config.heartbeatMs,
      abortMarginMs: config.abortMarginMs,
      facts: { ...options.facts, leaseMs: config.leaseMs, lostAfterMs: config.lostAfterMs },
    }
    const running = new Worker(new URL('./heartbeat-thread.js', import.meta.url), { workerData: task })
    thread = running
    running.on('message', hear)
    closed = new Promise((resolve) => running.once('exit', () => resolve()))
    return new Promise((resolve, reject) => {
      firstHeld = resolve
      neverHeld = reject
      running.once('error', (error) => {
        isCut = true
        doubt()
        reject(error)
      })
    })
  }

  return {
    id: () => id ?? 0,
    isHeld: () => isHeld && heldForMs() > 0,
    async start() {
      if (!thread) await begin()
    },
    async stop() {
      if (!thread) return
      thread.postMessage('stop')
      neverHeld?.(new HoldfastError('not_running', 'The session was ended before the database had confirmed it.'))
      const late = setTimeout(() => void thread?.terminate(), 3_000)
      await closed
      clearTimeout(late)
      clearTimeout(timer)
      isHeld = false
      thread = undefined
    },
  }
}
