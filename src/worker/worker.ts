/**
 * The worker: claims ahead, runs handlers, settles in groups.
 *
 * It claims as many jobs as it can start within a moment (by the rate it has just seen), so a claim's round trip is shared
 * by many short jobs while long ones are left to whoever is free. What it could not start within `holdMs` it gives back.
 */
import { hostname } from 'node:os'
import { listen } from '../bus/bus.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, priorities } from '../job/define.ts'
import type { Fence, HeldFence } from '../job/id.ts'
import { loop, type Service, within } from '../service/service.ts'
import type { Outcome } from '../settle/outcome.ts'
import { recordRefusals } from '../settle/settle.sql.ts'
import { makeSettler } from '../settle/settle.ts'
import type { Store } from '../store/store.ts'
import type { Attempt } from './attempt.ts'
import { lostAttempts, registerKinds } from './claim.sql.ts'
import { makeClaimer } from './claimer.ts'
import { handoverMemory, Taker } from './handover.ts'
import { makeHands, tickMs } from './hands.ts'
import { lanesOf } from './lanes.ts'
import { makePace } from './pace.ts'
import { makeReports } from './report.ts'
import { makeSession } from './session.ts'
import { vitalsMemory, writeVitals } from './vitals.ts'
import type { WorkerNews } from './worker-news.ts'

/** What a worker needs. */
export interface WorkerOptions {
  store: Store
  url: string
  isPooled: boolean
  config: Config
  jobs: readonly AnyJob[]
  /** Names the process that starts this one and sees it end, if there is one. */
  supervisor: string | null
  version: string
  news: WorkerNews
}

/** A worker of this process. */
export interface Worker extends Service {
  sessionId(): number
  /** How many handlers run at this moment. */
  running(): number
  /** Stops without letting handlers finish: for a worker that has lost its session for good. */
  halt(): Promise<void>
  /** Whether its lease certainly stands. */
  isHeld(): boolean
  /** How long each of its loops has given no sign of life, whatever the database does. */
  quiet(): { claims: number; watches: number; heartbeat: number }
  /** How long the handlers that run may still take, by their time-outs; 0 if none runs. */
  allowedMs(): number
}

/** How many handlers that ignore their signal are told of by name. */
const mostShown = 20

/** Makes a worker. `start` resolves once its session stands and it claims; `stop` drains first. */
export function makeWorker(options: WorkerOptions): Worker {
  const { store, config, news } = options
  const jobs = new Map(options.jobs.map((job) => [job.kind, job]))
  const lanes = lanesOf(options.jobs, config.queues)
  // each kind with the queue that it is served in
  const served = lanes.slice(0, lanes.length / priorities.length)
  const pace = makePace()
  const givenUp = new AbortController()
  const vitals = vitalsMemory()
  let isDeaf = options.isPooled
  const handover = handoverMemory()
  const taker = new Taker(handover)

  const session = makeSession({
    url: options.url,
    isPooled: options.isPooled,
    config,
    facts: {
      pid: process.pid,
      host: hostname(),
      supervisor: options.supervisor,
      version: options.version,
      kinds: served.map(({ kind }) => kind),
      queues: served.map(({ queue }) => queue),
      concurrency: config.concurrency,
    },
    vitals,
    handover,
    onDoubt: () => {
      news.doubted()
      hands.abortAll('lease_lost')
      hands.releaseWaiting()
    },
    onRefused: () => refusedAside(hands.held(), 'heartbeat'),
    onHeld: () => {
      hands.releaseForeign()
      claimer.sessionHeld()
    },
    onTrouble: (error) => news.trouble(error, 'heartbeat'),
    onGivenBack: news.gaveBack,
    onThreadStarted: () => {
      taker.forgetClaim()
      hands.announceWaiting()
      showUnresponsive()
    },
    onPooled: () => {
      // what listens through a pooler hears nothing, and would keep us from polling often
      isDeaf = true
      news.pooled()
      void bus.stop()
    },
    onThreadDied: news.threadDied,
    onFailed: news.failed,
  })

  function showUnresponsive(): void {
    session.tell({ unresponsive: hands.unresponsive.first(mostShown) })
  }

  let isWornOut = false
  function wearOut(): void {
    if (isWornOut || stopping) return
    isWornOut = true
    const message = `${hands.unresponsive.size} handlers ignored their signal and still run, and maxUnresponsive is ${config.maxUnresponsive}. This worker drains and claims no more; its process should be replaced.`
    news.wornOut(new HoldfastError('handlers_unresponsive', message))
  }

  const refused = (fences: Fence[], write: string) => {
    news.refused(fences, write)
    watcher.wake()
  }
  /** A refused write that is no outcome; those of outcomes are recorded where they are written. */
  const refusedAside = (fences: HeldFence[], write: string) => {
    if (fences.length === 0) return
    refused(fences, write)
    for (const sessionId of new Set(fences.map((fence) => fence.sessionId))) {
      const own = fences.filter((fence) => fence.sessionId === sessionId)
      store.run(recordRefusals, { fences: own, sessionId, write }).catch(news.trouble)
    }
  }
  const settler = makeSettler({
    store,
    batchSize: config.batchSize,
    givenUp: givenUp.signal,
    onRefused: refused,
    onTrouble: news.trouble,
  })
  const reports = makeReports({ store, onRefused: refusedAside, onTrouble: news.trouble })
  const hands = makeHands({
    store,
    config,
    jobs,
    settler,
    reports,
    pace,
    taker,
    onPrefetched: (prefetched) => session.tell({ prefetched }),
    onSettled,
    onTrouble: news.trouble,
    onUnresponsive: (attempt) => {
      news.unresponsive(attempt, hands.unresponsive.size)
      showUnresponsive()
      if (hands.unresponsive.size >= config.maxUnresponsive) wearOut()
    },
    onReturned: (attempt) => {
      news.returned(attempt, hands.unresponsive.size)
      showUnresponsive()
    },
    isLeaseHeld: session.isHeld,
    sessionId: session.id,
    onRoom: () => claimer.roomCame(),
  })
  const watcher = loop({ turn: watch, onError: news.trouble })
  const bus = listen({
    url: options.url,
    channels: ['holdfast_wake', 'holdfast_abort'],
    onNews: (channel, payload) =>
      channel === 'holdfast_wake' ? claimer.wake() : payload === String(session.id()) && watcher.wake(),
    onGap: () => claimer.wake(),
    onTrouble: news.trouble,
  })
  const claimer = makeClaimer({
    store,
    config,
    jobs: options.jobs,
    lanes,
    session,
    hands,
    pace,
    taker,
    isBusConnected: () => bus.isConnected() && !isDeaf,
    onTrouble: news.trouble,
  })
  let ticker: NodeJS.Timeout | undefined

  function onSettled(attempt: Attempt, outcome: Outcome): void {
    news.settled(attempt, outcome)
    if (outcome.move === 'advance' || outcome.move === 'retry') claimer.wake()
  }

  /** Finds out which attempts are no longer ours: cancelled, or taken by the reaper. */
  async function watch(): Promise<number> {
    const mine = hands.held()
    if (mine.length > 0)
      hands.abortLost(await store.run(lostAttempts, { fences: mine }))
    return config.heartbeatMs
  }

  function tick(): void {
    hands.tick()
    const unresponsive = hands.unresponsive.size
    writeVitals(vitals, { isClaiming: !stopping, busy: hands.running, unresponsive })
  }

  async function start(): Promise<void> {
    if (ticker) return
    ticker = setInterval(tick, tickMs)
    await register(store, config, options.jobs)
    if (stopping) throw new HoldfastError('not_running', 'The worker was stopped while it started.')
    await session.start()
    await Promise.all([isDeaf ? undefined : bus.start(), reports.start(), watcher.start(), claimer.start()])
  }

  /** Claims no more, lets handlers finish within their grace, gives back the rest, and only then lets go of the lease. */
  async function stop(drainMs: number): Promise<void> {
    await Promise.all([claimer.stop(), bus.stop()])
    hands.releaseWaiting()
    await within(drainMs, hands.empty())
    hands.abortAll('shutdown')
    await within(Math.min(1_000, config.drainMs), hands.empty())
    hands.giveUp()
    // an outcome waits for its attempt's reports, so the settler is idle only after those
    await reports.stop()
    // a database that does not come back would hold us for ever; the reaper will take what we could not give
    if (!(await within(config.leaseMs, settler.idle()))) givenUp.abort()
    await settler.idle()
    await watcher.stop()
    await session.stop()
    clearInterval(ticker)
    ticker = undefined
  }

  let stopping: Promise<void> | undefined
  return {
    start,
    stop: () => {
      stopping ??= stop(config.drainMs)
      return stopping
    },
    halt: () => {
      stopping ??= stop(0)
      return stopping
    },
    sessionId: session.id,
    isHeld: session.isHeld,
    running: () => hands.running,
    quiet: () => ({ claims: claimer.quietMs(), watches: watcher.quietMs(), heartbeat: session.quietMs() }),
    allowedMs: () => {
      const nowMs = performance.now()
      const left = hands.runningFor(0).map(({ startedAtMs, allowance }) => startedAtMs + allowance.timeoutMs - nowMs)
      return left.length === 0 ? 0 : Math.max(0, ...left) + config.timeoutGraceMs
    },
  }
}

async function register(store: Store, config: Config, jobs: readonly AnyJob[]): Promise<void> {
  await store.run(registerKinds, {
    tenant: '',
    names: jobs.map((job) => job.kind),
    queues: jobs.map((job) => job.queue),
    priorities: jobs.map((job) => job.priority),
    crashBudgets: jobs.map((job) => job.crashBudget ?? config.crashBudget),
    stages: jobs.map((job) => JSON.stringify(job.stages.map(({ name, optional = false }) => ({ name, optional })))),
  })
}
