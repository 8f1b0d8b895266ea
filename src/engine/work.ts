import { readFileSync } from 'node:fs'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'
import { isConnectionError } from '../store/connection.ts'
import { makeWorker } from '../worker/worker.ts'
import type { EngineParts } from './engine.ts'

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
  /** Claims no more, lets handlers finish within their grace, gives back the rest. */
  stop(): Promise<void>
}

/** The version of this program. */
export const version: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version

/** Starts a worker and answers once it claims. */
export async function startWorking(parts: EngineParts, options: WorkOptions, onSettled: () => void): Promise<Working> {
  const { store, url, log, jobs, supervisor } = parts
  if (jobs.length === 0)
    throw new HoldfastError('kind_invalid', 'There is nothing to work on: pass the kinds to connect({ jobs: [...] }).')
  const config = {
    ...parts.config,
    ...(options.concurrency && { concurrency: options.concurrency }),
    ...(options.queues && { queues: options.queues }),
  }
  const worker: Service & { sessionId(): number } = makeWorker({
    store,
    url,
    isPooled: config.pooled,
    config,
    jobs,
    supervisor,
    version,
    news: {
      settled: onSettled,
      refused: (fences, write) =>
        log.warn(
          { write, jobs: fences.slice(0, 10), count: fences.length },
          'a write was refused: these attempts are no longer ours',
        ),
      doubted: () => log.warn({}, 'the lease could not be confirmed in time; all attempts were aborted'),
      trouble: (error) =>
        isConnectionError(error)
          ? log.warn({ reason: messageOf(error) }, 'the database is out of reach; trying again')
          : log.error({ err: error }, 'trouble in the worker'),
    },
  })
  await worker.start()
  return worker
}
