import type { Config } from '../config/config.ts'
import type { AbortReason, AnyJob } from '../job/define.ts'
import type { HeldFence } from '../job/id.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Settler } from '../settle/settle.ts'
import type { Store } from '../store/store.ts'
import { type Attempt, attemptMaker, heldFenceOf } from './attempt.ts'
import { failure, timeoutError } from './conclude.ts'
import { type HandlerParts, runHandler } from './handler.ts'
import type { Taker } from './handover.ts'
import type { ClaimedRow } from './lot.ts'
import type { Pace } from './pace.ts'
import { Parents } from './parents.ts'
import { Prefetch, type Prefetched } from './prefetch.ts'
import type { Reports } from './report.ts'
import { Settling } from './settling.ts'
import { beginAttempt, endAttempt } from './span.ts'
import { Unresponsive } from './unresponsive.ts'

/** The attempts in the hands of a worker: those that wait for a free handler, and those that run. */
export interface Hands {
  /** Takes what was claimed. What was claimed for a session that this worker no longer has is given back. */
  take(rows: ClaimedRow[], how?: { isAlone: boolean }): void
  /** How many more jobs to claim now. */
  room(): number
  /** Looks at the clock: fires time-outs, gives up on hung handlers, gives back what waited too long. */
  tick(): void
  abortAll(reason: AbortReason): void
  /** Aborts these attempts, which are no longer this worker's. */
  abortLost(lost: { id: string; attempt: number; state: string | null }[]): void
  /** Gives back whatever waits for a handler. */
  releaseWaiting(): void
  /** Tells a new heartbeat thread what waits. */
  announceWaiting(): void
  /** Gives back whatever waits and was claimed for another session than the present one. */
  releaseForeign(): void
  /** Gives back whatever still runs, and takes no notice of what it returns later. */
  giveUp(): void
  /** The attempts that have run at least that long. */
  runningFor(ms: number): Attempt[]
  readonly running: number
  readonly waiting: number
  /** The handlers that were told to end, did not, and were given up. */
  readonly unresponsive: Unresponsive
  /** Everything that is held in the database in this worker's name: waiting, running, or on its way to be settled. */
  held(): HeldFence[]
  /** Whether that is nothing. */
  readonly isEmpty: boolean
  /** Whether it is a suspect, which runs alone. */
  readonly hasSuspect: boolean
  /** Resolves when no handler runs and nothing waits. */
  empty(): Promise<void>
}

/** What the hands need. */
export interface HandsOptions {
  store: Store
  config: Config
  jobs: ReadonlyMap<string, AnyJob>
  settler: Settler
  reports: Reports
  pace: Pace
  /** Decides between this thread and the heartbeat thread who may have a waiting job. */
  taker: Taker
  /** Tells the heartbeat thread of jobs that wait. */
  onPrefetched: (jobs: Prefetched) => void
  onSettled: (attempt: Attempt, outcome: Outcome) => void
  onTrouble: (error: unknown) => void
  /** A handler ignored its signal for longer than the grace; its place is free. */
  onUnresponsive: (attempt: Attempt) => void
  /** One of those has returned after all. */
  onReturned: (attempt: Attempt) => void
  /** Whether the lease stands; without it nothing is started. */
  isLeaseHeld: () => boolean
  /** The present session. */
  sessionId: () => number
  /** There is room for more. */
  onRoom: () => void
}

/** How often the clock is looked at. */
export const tickMs = 50

/** Makes the hands of a worker. */
export function makeHands(options: HandsOptions): Hands {
  const { config, settler, reports, pace } = options
  const handlerParts: HandlerParts = {
    config,
    store: options.store,
    reporter: reports,
    parents: new Parents(options.store),
  }
  const makeAttempt = attemptMaker(config)
  const running = new Set<Attempt>()
  const settling = new Settling({
    settler,
    reports,
    onSettled: options.onSettled,
    onTrouble: options.onTrouble,
    onWritten() {
      if (waiting.size > 0) schedulePump()
      // a worker that is kept for a suspect waits for the very last settle
      if (isEmpty()) options.onRoom()
    },
  })
  const waiting = new Prefetch(options.taker, options.onPrefetched)
  let emptied: (() => void)[] = []
  const unsettledMost = 4 * config.batchSize
  const unresponsive = new Unresponsive({ onGivenUp: options.onUnresponsive, onReturned: options.onReturned })
  let tickedAtMs = performance.now()
  let isAlone = false
  const isEmpty = () => running.size + waiting.size + settling.size === 0

  const mayStart = () => running.size < config.concurrency && settler.size < unsettledMost && options.isLeaseHeld()

  function pump(): void {
    let started = 0
    while (waiting.size > 0 && mayStart()) {
      const row = waiting.shift()
      if (!row) break
      begin(row)
      started += 1
    }
    if (started > 0) pace.started(started, performance.now())
    if (running.size + waiting.size === 0) tellEmpty()
  }

  function tellEmpty(): void {
    const told = emptied
    emptied = []
    for (const resolve of told) resolve()
  }

  function begin(row: ClaimedRow): void {
    const attempt = makeAttempt(options.jobs.get(row.kind) as AnyJob, row)
    attempt.startedAtMs = performance.now()
    attempt.span = beginAttempt(attempt)
    running.add(attempt)
    const run = () => runHandler(handlerParts, attempt)
    void (attempt.span ? attempt.span.run(run) : run()).then((outcome) => returned(attempt, outcome))
  }

  function returned(attempt: Attempt, outcome: Outcome): void {
    if (attempt.isOver) unresponsive.remove(attempt)
    else end(attempt, outcome)
  }

  function end(attempt: Attempt, outcome: Outcome): void {
    attempt.isOver = true
    running.delete(attempt)
    // a cancelled job is final already: there is nothing to write about this attempt
    if (attempt.abortedBy === 'cancelled') endAttempt(attempt, outcome, 'cancelled')
    else settling.settle(attempt, outcome)
    schedulePump()
  }

  let isPumpScheduled = false
  function schedulePump(): void {
    if (isPumpScheduled) return
    isPumpScheduled = true
    queueMicrotask(() => {
      isPumpScheduled = false
      pump()
      if (room() > 0) options.onRoom()
    })
  }

  function room(): number {
    if (isAlone && !isEmpty()) return 0
    const free = config.concurrency - running.size
    const target = Math.min(2 * config.batchSize, free + pace.ahead())
    const wanted = Math.min(config.batchSize, target - waiting.size)
    // a nearly full buffer is topped up in one larger claim rather than in many small ones
    return wanted >= Math.min(config.batchSize, target / 2) ? wanted : 0
  }

  function releaseThose(isUnwanted: (row: ClaimedRow, sinceMs: number) => boolean): void {
    settling.giveBack(waiting.remove(isUnwanted))
    if (running.size + waiting.size === 0) tellEmpty()
  }

  function watch(attempt: Attempt, nowMs: number): void {
    if (attempt.abortedBy === undefined && nowMs - attempt.startedAtMs >= attempt.allowance.timeoutMs)
      attempt.abort('timeout', nowMs)
    if (attempt.abortedBy !== undefined && nowMs - attempt.abortedAtMs >= config.timeoutGraceMs)
      giveUpOn(attempt, nowMs)
  }

  /** Frees the place of a handler that ignores its signal, whatever the reason: nobody knows whether it will ever return. */
  function giveUpOn(attempt: Attempt, nowMs: number): void {
    end(attempt, attempt.abortedBy === 'timeout' ? failure(attempt, timeoutError(attempt)) : { move: 'release' })
    unresponsive.add(attempt, nowMs)
  }

  /** Handlers can't react while another one blocks the event loop: that time is no part of their grace. */
  function extendGrace(lateMs: number): void {
    for (const attempt of running) if (attempt.abortedBy !== undefined) attempt.abortedAtMs += lateMs
  }

  return {
    take(rows, how) {
      if (rows.length > 0) isAlone = how?.isAlone === true
      // one claim has one session; if that was ended while the claim was under way, the rows are about to be given to others
      if (rows[0] && rows[0].sessionId !== options.sessionId()) return settling.giveBack(rows)
      waiting.push(rows, waiting.size === 0 && mayStart())
      pump()
    },
    room,
    tick() {
      const nowMs = performance.now()
      const lateMs = nowMs - tickedAtMs - 2 * tickMs
      tickedAtMs = nowMs
      if (lateMs > 0) extendGrace(lateMs)
      for (const attempt of running) watch(attempt, nowMs)
      releaseThose((_, sinceMs) => sinceMs < nowMs - config.holdMs)
    },
    abortAll(reason) {
      const nowMs = performance.now()
      for (const attempt of running) attempt.abort(reason, nowMs)
    },
    abortLost(lost) {
      const nowMs = performance.now()
      const reasons = new Map(
        lost.map(
          ({ id, attempt, state }) => [`${id} ${attempt}`, state === 'cancelled' ? 'cancelled' : 'lease_lost'] as const,
        ),
      )
      waiting.remove((row) => reasons.has(`${row.id} ${row.attempt}`))
      schedulePump()
      for (const attempt of running) {
        const reason = reasons.get(`${attempt.fence.id} ${attempt.fence.attempt}`)
        if (reason) attempt.abort(reason, nowMs)
      }
    },
    releaseWaiting: () => releaseThose(() => true),
    announceWaiting: () => waiting.announceAll(),
    releaseForeign() {
      const own = options.sessionId()
      releaseThose((row) => row.sessionId !== own)
    },
    giveUp() {
      for (const attempt of running) end(attempt, { move: 'release' })
    },
    runningFor(ms) {
      const beforeMs = performance.now() - ms
      return [...running].filter((attempt) => attempt.startedAtMs <= beforeMs)
    },
    held: () => [...waiting.rows().map(heldFenceOf), ...[...running].map(({ fence }) => fence), ...settling.fences()],
    get isEmpty() {
      return isEmpty()
    },
    get hasSuspect() {
      // one that is not settled yet would share the blame for what the next one does
      return isAlone && !isEmpty()
    },
    get running() {
      return running.size
    },
    get waiting() {
      return waiting.size
    },
    unresponsive,
    empty: () =>
      running.size + waiting.size === 0 ? Promise.resolve() : new Promise((resolve) => emptied.push(resolve)),
  }
}
