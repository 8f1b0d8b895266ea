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
import type { Config } from '../config/config.ts'
import { type ErrorCode, HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import { Heartbeat } from './heartbeat.ts'
import type { HeartbeatNews, HeartbeatOrder } from './heartbeat-task.ts'
import type { SessionFacts } from './session.sql.ts'

/** The lease of this process over all its attempts. */
export interface Session extends Service {
  /** The id of the present session. */
  id(): number
  /** Whether the lease certainly stands, by this process's own monotonic clock. */
  isHeld(): boolean
  /** How long the heartbeat thread has given no sign of life, whatever the database does. */
  quietMs(): number
  /** Tells the heartbeat thread something. */
  tell(order: Exclude<HeartbeatOrder, 'stop'>): void
}

/** What a session needs. */
export interface SessionOptions {
  url: string
  isPooled: boolean
  config: Config
  facts: Omit<SessionFacts, 'leaseMs' | 'lostAfterMs'>
  /** How this process is: the heartbeat thread reads it. */
  vitals: SharedArrayBuffer
  /** Who may have a prefetched job, this process's main thread or its heartbeat thread. */
  handover: SharedArrayBuffer
  /** The lease is in doubt or gone: abort everything now. */
  onDoubt: () => void
  /** A heartbeat was refused: the session was ended, and all its attempts were given away. */
  onRefused: () => void
  /** The lease stands (again); a fresh session id means that all earlier attempts are lost. */
  onHeld: (id: number) => void
  onTrouble: (error: Error) => void
  /** The heartbeat thread has given back so many jobs that a blocked event loop could not start. */
  onGivenBack: (count: number, blockedMs: number) => void
  /** A heartbeat thread was started; it has to be shown what is to be shown. */
  onThreadStarted: () => void
  /** The URL leads through a transaction pooler, although nobody said so. */
  onPooled: () => void
  /** The heartbeat thread died; another one follows. */
  onThreadDied: (why: string) => void
  /** There is no heartbeat any more, and there will be none: this worker has to end. */
  onFailed: (error: HoldfastError) => void
}

/** An error of the thread, without a stack: it would be one of this thread, and tell nothing. */
function errorOf({ code, message }: { code: ErrorCode | null; message: string }): Error {
  const error = code ? new HoldfastError(code, message) : new Error(message)
  delete error.stack
  return error
}

const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000

/** Makes the session of this process. `start` resolves once the database has confirmed it. */
export function makeSession(options: SessionOptions): Session {
  const { config } = options
  let id: number | undefined
  let openedId: number | null = null
  let confirmedAtMs = Number.NEGATIVE_INFINITY
  let isCut = false
  let isHeld = false
  let timer: NodeJS.Timeout | undefined
  let starting: Promise<void> | undefined
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

  /** The connection of the heartbeat is cut, or about to be. */
  function cut(): void {
    isCut = true
    check()
  }

  function hear(news: HeartbeatNews): void {
    if (news.news === 'opened') openedId = news.id
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
    if (news.news === 'cut') cut()
    if (news.news === 'pooled') {
      // until the next heartbeat says that there is no lock, its loss could shorten the lease
      cut()
      task.isPooled = true
      options.onPooled()
    }
    if (news.news === 'ended') {
      openedId = null
      options.onRefused()
      doubt()
    }
    if (news.news === 'gaveBack') options.onGivenBack(news.count, news.blockedMs)
    if (news.news === 'trouble') options.onTrouble(errorOf(news))
  }

  const task = {
    url: options.url,
    isPooled: options.isPooled,
    heartbeatMs: config.heartbeatMs,
    abortMarginMs: config.abortMarginMs,
    facts: { ...options.facts, leaseMs: config.leaseMs, lostAfterMs: config.lostAfterMs },
    vitals: options.vitals,
    handover: options.handover,
    holdMs: config.holdMs,
  }
  const heartbeat = new Heartbeat({
    task,
    sessionId: () => openedId,
    onNews: hear,
    onStarted: options.onThreadStarted,
    onLost: (why) => {
      cut()
      options.onThreadDied(why)
    },
    onFailed: (error) => {
      // no later heartbeat can be confirmed, so nothing is gained by waiting for the end of the lease
      doubt()
      neverHeld?.(error)
      options.onFailed(error)
    },
  })

  function begin(): Promise<void> {
    const held = new Promise<void>((resolve, reject) => {
      firstHeld = resolve
      neverHeld = reject
    })
    heartbeat.start()
    return held
  }

  return {
    id: () => id ?? 0,
    isHeld: () => isHeld && heldForMs() > 0,
    quietMs: () => heartbeat.quietMs(),
    tell: (order) => heartbeat.order(order),
    start() {
      starting ??= begin()
      return starting
    },
    async stop() {
      if (!starting) return
      neverHeld?.(new HoldfastError('not_running', 'The session was ended before the database had confirmed it.'))
      await heartbeat.stop()
      clearTimeout(timer)
      isHeld = false
    },
  }
}
