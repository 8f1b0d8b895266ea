import { type Config, readConfig } from '../config/config.ts'
import { version } from '../config/version.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { isEnding } from '../job/machine.ts'
import { boundOf, ladder } from '../reaper/recovery-bound.ts'
import type { Service } from '../service/service.ts'
import type { WorkerObserver } from '../worker/observer.ts'
import { Worker } from '../worker/worker.ts'
import { withWebhooks } from './deliver.ts'
import { tellOutcome } from './job-log.ts'
import { patientMs } from './liveness.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'
import { makeEngineReaper } from './reap.ts'
import type { Running } from './running.ts'

/** Options of a worker. */
export interface WorkOptions {
  /** Number of handlers that run concurrently. Default: the `concurrency` setting. */
  concurrency?: number
  /** Queues to work on. Default: the `queues` setting, or else all queues of the kinds passed to `connect`. */
  queues?: string[]
}

/** A running worker. */
export interface Working {
  /** The session of this worker. */
  sessionId(): number
  /** Whether its lease is certainly valid, so that it may claim. */
  isHeld(): boolean
  /** How long the running handlers may still take according to their timeouts; 0 if none is running. */
  allowedMs(): number
  /** Stops claiming, lets handlers finish within `drainMs`, and releases the remaining jobs. */
  stop(): Promise<void>
  /**
   * Resolves when the worker has ended: with undefined once it was stopped, or with the error as soon as it failed. A worker that failed
   * stops by itself, together with its reaper; replace its process.
   */
  readonly ended: Promise<HoldfastError | undefined>
}

/** Called for each job that ends in this process. */
export type OnEnded = (id: JobId) => void

/** Starts a worker together with a reaper, and with webhooks. */
export async function work(
  parts: EngineParts,
  running: Running,
  options: WorkOptions,
  onEnded: OnEnded,
): Promise<Working> {
  const worker = new WorkerWithReaper(parts, options, onEnded)
  const stop = await running.begin(withWebhooks(parts, worker))
  return {
    sessionId: () => worker.sessionId(),
    isHeld: () => worker.isHeld(),
    allowedMs: () => worker.allowedMs(),
    ended: worker.ended,
    stop,
  }
}

/** A worker, and a reaper that starts and stops with it. */
class WorkerWithReaper implements Service, Working {
  readonly ended: Promise<HoldfastError | undefined>
  readonly #parts: EngineParts
  readonly #config: Config
  readonly #worker: Worker
  readonly #reaper: Service
  #end: (error?: HoldfastError) => void = () => {}
  #unwatch = () => {}
  #stopping: Promise<void> | undefined

  constructor(parts: EngineParts, options: WorkOptions, onEnded: OnEnded) {
    const { store, url, jobs, supervisor, flow } = parts
    if (jobs.length === 0)
      throw new HoldfastError('kind_invalid', 'There are no kinds to work on: pass them to connect({ jobs: [...] }).')
    const config = readConfig({ ...parts.config, ...options }, {})
    this.#parts = parts
    this.#config = config
    const observer = {
      ...workerObserver(parts, onEnded),
      failed: (error: HoldfastError) => this.#failed(error),
      wornOut: (error: HoldfastError) => this.#wornOut(error),
    }
    this.#worker = new Worker({
      store,
      url,
      isPooled: config.pooled,
      config,
      jobs,
      supervisor,
      version,
      flow,
      observer,
    })
    this.#reaper = makeEngineReaper(parts, { declares: true })
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  sessionId(): number {
    return this.#worker.sessionId()
  }

  isHeld(): boolean {
    return this.#worker.isHeld()
  }

  allowedMs(): number {
    return this.#worker.allowedMs()
  }

  /** Resolves once the worker claims jobs. */
  async start(): Promise<void> {
    this.#unwatch = watchWorker(this.#parts, this.#worker)
    await this.#worker.start()
    if (this.#stopping) throw new HoldfastError('not_running', 'The worker was stopped while it was starting.')
    await this.#reaper.start()
    const bounds = ladder(this.#config).map(({ rung, boundMs }) => `${rung}: ${boundMs} ms`)
    const facts = { session: this.sessionId(), boundMs: boundOf(this.#config), ladder: bounds }
    this.#parts.log.info(facts, 'worker started; a lost job runs again within the bound')
  }

  stop(): Promise<void> {
    this.#unwatch()
    const stopping = this.#drain()
    stopping.then(
      () => this.#end(),
      () => {},
    )
    return stopping
  }

  /** The reaper outlives the drain, because a long last job must not leave recovery to chance. */
  #drain(): Promise<void> {
    this.#stopping ??= this.#worker.stop().then(() => this.#reaper.stop())
    return this.#stopping
  }

  /** A process that can't keep a session must not stay leader either, so the reaper stops with the worker. */
  #failed(error: HoldfastError): void {
    this.#report(error, 'the worker failed; stopping it and its reaper')
    this.#unwatch()
    this.#stopping ??= Promise.all([this.#reaper.stop(), this.#worker.halt()]).then(() => {})
    this.#stopping.catch((err) => this.#parts.log.error({ err }, 'the failed worker could not stop cleanly'))
  }

  /** Only the end of the process ends handlers that ignore their abort signal. The other handlers may finish first. */
  #wornOut(error: HoldfastError): void {
    this.#report(error, 'too many handlers ignore their abort signal; the worker is draining and must be replaced')
    this.#drain().catch((err) => this.#parts.log.error({ err }, 'the worker could not drain cleanly'))
  }

  #report(error: HoldfastError, message: string): void {
    this.#parts.log.error({ err: error }, message)
    this.#parts.metrics.add('holdfast_worker_failures_total')
    this.#end(error)
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

function workerObserver(
  { log, jobLog, listeners, metrics, onPooler }: EngineParts,
  onEnded: OnEnded,
): Omit<WorkerObserver, 'failed' | 'wornOut'> {
  return {
    settled(attempt, outcome) {
      const { fence, job, stage } = attempt
      metrics.add('holdfast_settled_total', { kind: job.kind, outcome: outcome.move })
      tellOutcome(jobLog, { fence, kind: job.kind, stage: stage.name }, outcome)
      listeners.settled({ fence, kind: job.kind, stage: stage.name }, outcome)
      if (isEnding(outcome.move)) onEnded(fence.id)
    },
    refused(fences, write) {
      metrics.add('holdfast_refused_writes_total', { write }, fences.length)
      log.warn(
        { write, jobs: fences.slice(0, 10), count: fences.length },
        'a write was refused: this worker no longer owns these attempts',
      )
    },
    doubted() {
      metrics.add('holdfast_lease_doubts_total')
      log.warn({}, 'the lease could not be confirmed in time; all attempts were aborted')
    },
    pooled: onPooler,
    threadDied(why) {
      metrics.add('holdfast_heartbeat_deaths_total')
      log.error({ reason: why }, 'the heartbeat thread died; starting a new one')
    },
    unresponsive({ job, fence, stage, abortedBy }, count) {
      const reason = abortedBy as string
      metrics.add('holdfast_unresponsive_total', { kind: job.kind, reason })
      metrics.set('holdfast_unresponsive_handlers', count)
      log.warn(
        { kind: job.kind, id: fence.id, stage: stage.name, attempt: fence.attempt, reason, unresponsive: count },
        'a handler ignored its abort signal and is still running; its slot is free, and its return value will be discarded',
      )
    },
    returned({ job, fence, stage }, count) {
      metrics.set('holdfast_unresponsive_handlers', count)
      log.info(
        { kind: job.kind, id: fence.id, stage: stage.name, attempt: fence.attempt, unresponsive: count },
        'a handler that ignored its abort signal has returned',
      )
    },
    gaveBack(count, blockedMs) {
      metrics.add('holdfast_blocked_releases_total', {}, count)
      log.warn({ count, blockedMs }, 'a handler blocks the event loop; released jobs that had not started')
    },
    onError: (error, part = 'worker') => logError(log, part, error),
  }
}
