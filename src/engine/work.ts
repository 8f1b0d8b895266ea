import { readFileSync } from 'node:fs'
import { readConfig } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { isEnding } from '../job/machine.ts'
import { boundOf, ladder } from '../reaper/bound.ts'
import type { Service } from '../service/service.ts'
import { makeWorker, type Worker } from '../worker/worker.ts'
import type { WorkerNews } from '../worker/worker-news.ts'
import type { EngineParts } from './engine.ts'
import { tellOutcome } from './job-log.ts'
import { patientMs } from './patience.ts'
import { makeEngineReaper } from './reap.ts'
import { tellTrouble } from './trouble.ts'

/** How to work. */
export interface WorkOptions {
  /** Handlers that run at once; default: the setting. */
  concurrency?: number
  /** Queues to work on; default: the setting, and without it every queue of the kinds known here. */
  queues?: string[]
}

/** Work that is going on. */
export interface Working {
  /** The session of this worker. */
  sessionId(): number
  /** Whether its lease certainly stands, so that it may claim. */
  isHeld(): boolean
  /** How long the handlers that run may still take, by their time-outs; 0 if none runs. */
  allowedMs(): number
  /** Claims no more, lets handlers finish within their grace, gives back the rest. */
  stop(): Promise<void>
  /**
   * Resolves when it no longer works: with nothing once it was stopped, or with the error as soon as it failed. A worker that failed stops
   * by itself, and its reaper with it; its process should be replaced.
   */
  readonly ended: Promise<HoldfastError | undefined>
}

/** Told of each job that has ended in this process. */
export type OnEnded = (id: JobId) => void

/** The version of this program. */
export const version: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version

/** Makes a worker with a reaper beside it. `start` answers once it claims. */
export function makeWorking(parts: EngineParts, options: WorkOptions, onEnded: OnEnded): Working & Service {
  const { log, jobs, metrics } = parts
  if (jobs.length === 0)
    throw new HoldfastError('kind_invalid', 'There is nothing to work on: pass the kinds to connect({ jobs: [...] }).')
  const config = readConfig({ ...parts.config, ...options }, {})
  const worker = makeWorker({
    store: parts.store,
    url: parts.url,
    isPooled: config.pooled,
    config,
    jobs,
    supervisor: parts.supervisor,
    version,
    news: { ...workerNews(parts, onEnded), failed, wornOut },
  })
  const reaper = makeEngineReaper(parts)
  let unwatch = () => {}
  let stopping: Promise<void> | undefined
  let end: (error?: HoldfastError) => void = () => {}
  const ended = new Promise<HoldfastError | undefined>((resolve) => {
    end = resolve
  })

  /** Worker and reaper live and die together: a process that can't keep a session must not go on leading either. */
  function failed(error: HoldfastError): void {
    log.error({ err: error }, 'the worker has failed; it stops, and its reaper with it')
    metrics.add('holdfast_worker_failures_total')
    end(error)
    unwatch()
    stopping ??= Promise.all([reaper.stop(), worker.halt()]).then(() => {})
    stopping.catch((err) => log.error({ err }, 'the failed worker could not stop in good order'))
  }

  /** Only the process that ends can end handlers that ignore their signal; those that heed it may finish first. */
  function wornOut(error: HoldfastError): void {
    log.error({ err: error }, 'too many handlers ignore their signal; the worker drains and has to be replaced')
    metrics.add('holdfast_worker_failures_total')
    end(error)
    stopping ??= worker.stop().then(() => reaper.stop())
    stopping.catch((err) => log.error({ err }, 'the worker could not drain in good order'))
  }

  return {
    sessionId: worker.sessionId,
    isHeld: worker.isHeld,
    allowedMs: worker.allowedMs,
    ended,
    async start() {
      unwatch = watchWorker(parts, worker)
      await worker.start()
      if (stopping) throw new HoldfastError('not_running', 'The worker was stopped while it started.')
      await reaper.start()
      const bounds = ladder(config).map(({ rung, boundMs }) => `${rung}: ${boundMs} ms`)
      const facts = { session: worker.sessionId(), boundMs: boundOf(config), ladder: bounds }
      log.info(facts, 'works; a lost job moves again within the bound')
    },
    stop() {
      unwatch()
      // the reaper outlives the drain: a long last job must not leave the clockwork to chance
      stopping ??= worker.stop().then(() => reaper.stop())
      stopping.then(
        () => end(),
        () => {},
      )
      return stopping
    },
  }
}

function watchWorker(parts: EngineParts, worker: Worker): () => void {
  const { vitals, config } = parts
  const watched = [
    vitals.watch('claim loop', patientMs(parts), () => worker.quiet().claims),
    vitals.watch('watch loop', patientMs(parts), () => worker.quiet().watches),
    vitals.watch('heartbeat thread', config.livenessMs, () => worker.quiet().heartbeat),
  ]
  return () => {
    for (const unwatch of watched) unwatch()
  }
}

function workerNews(
  { log, jobLog, metrics, onPooler }: EngineParts,
  onEnded: OnEnded,
): Omit<WorkerNews, 'failed' | 'wornOut'> {
  return {
    settled(attempt, outcome) {
      const { fence, job, stage } = attempt
      metrics.add('holdfast_settled_total', { kind: job.kind, outcome: outcome.move })
      tellOutcome(jobLog, { fence, kind: job.kind, stage: stage.name }, outcome)
      if (isEnding(outcome.move)) onEnded(fence.id)
    },
    refused(fences, write) {
      metrics.add('holdfast_refused_writes_total', { write }, fences.length)
      log.warn(
        { write, jobs: fences.slice(0, 10), count: fences.length },
        'a write was refused: these attempts are no longer ours',
      )
    },
    doubted() {
      metrics.add('holdfast_lease_doubts_total')
      log.warn({}, 'the lease could not be confirmed in time; all attempts were aborted')
    },
    pooled: onPooler,
    threadDied(why) {
      metrics.add('holdfast_heartbeat_deaths_total')
      log.error({ reason: why }, 'the heartbeat thread died; another one takes over')
    },
    unresponsive({ job, fence, stage, abortedBy }, count) {
      const reason = abortedBy as string
      metrics.add('holdfast_unresponsive_total', { kind: job.kind, reason })
      metrics.set('holdfast_unresponsive_handlers', count)
      log.warn(
        { kind: job.kind, id: fence.id, stage: stage.name, attempt: fence.attempt, reason, unresponsive: count },
        'a handler ignored its signal and still runs; its place is free, and its return value is discarded',
      )
    },
    returned({ job, fence, stage }, count) {
      metrics.set('holdfast_unresponsive_handlers', count)
      log.info(
        { kind: job.kind, id: fence.id, stage: stage.name, attempt: fence.attempt, unresponsive: count },
        'a handler that had ignored its signal returned',
      )
    },
    gaveBack(count, blockedMs) {
      metrics.add('holdfast_blocked_releases_total', {}, count)
      log.warn({ count, blockedMs }, 'a handler blocks the event loop; jobs that had not started were given back')
    },
    trouble: (error, part = 'worker') => tellTrouble(log, part, error),
  }
}
