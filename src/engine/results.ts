import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { FinalState } from '../job/machine.ts'
import { loop, type Service } from '../service/service.ts'
import type { Store } from '../store/store.ts'
import { finalOf } from './read.sql.ts'

/** How a job ended. */
export interface Ending {
  id: JobId
  state: FinalState
  /** The stage that it ended in. */
  stage: number
  error: { code: string; message: string } | null
  outputs: { name: string; stage: number; output: unknown }[]
}

/** Waits for jobs to become final, for all callers of this process with one question at a time. */
export interface Results extends Service {
  wait(id: JobId, timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<Ending>
  /** Something was settled in this process: look now. */
  nudge(): void
}

interface Waiter {
  resolve: (ending: Ending) => void
  reject: (error: Error) => void
  sinceMs: number
}

const mostAtOnce = 1_000

/** Makes the results of an engine. Young waits are looked after often, old ones rarely. */
export function makeResults(store: Store, onTrouble: (error: unknown) => void): Results {
  const waiters = new Map<JobId, Set<Waiter>>()
  const looker = loop({ turn: look, onError: onTrouble })
  let isStarted = false
  let isStopped = false

  async function look(): Promise<number> {
    const ids = [...waiters.keys()]
    for (let start = 0; start < ids.length; start += mostAtOnce) {
      for (const ending of await store.run(finalOf, { ids: ids.slice(start, start + mostAtOnce) }))
        settle(ending as Ending)
    }
    return waiters.size === 0 ? 60_000 : youngestWaitMs()
  }

  function settle(ending: Ending): void {
    for (const waiter of waiters.get(ending.id) ?? []) waiter.resolve(ending)
  }

  function youngestWaitMs(): number {
    const nowMs = performance.now()
    let ageMs = Number.POSITIVE_INFINITY
    for (const set of waiters.values()) for (const { sinceMs } of set) ageMs = Math.min(ageMs, nowMs - sinceMs)
    return Math.min(500, Math.max(2, ageMs / 5))
  }

  function add(id: JobId, waiter: Waiter): () => void {
    const same = waiters.get(id) ?? new Set()
    waiters.set(id, same.add(waiter))
    if (!isStarted) void looker.start()
    isStarted = true
    looker.wake()
    return () => {
      same.delete(waiter)
      if (same.size === 0) waiters.delete(id)
    }
  }

  function wait(id: JobId, timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<Ending> {
    if (isStopped) return Promise.reject(new HoldfastError('not_running', 'This Holdfast was closed.'))
    let forget = () => {}
    let timer: NodeJS.Timeout | undefined
    const stop = () => reject(signal?.reason ?? new Error('aborted'))
    let reject: (error: Error) => void = () => {}
    const ended = new Promise<Ending>((resolve, fail) => {
      reject = fail
      forget = add(id, { resolve, reject: fail, sinceMs: performance.now() })
      // beyond what a timer can hold (24 days), nobody waits for the end anyway
      if (timeoutMs !== undefined && timeoutMs < 2 ** 31)
        timer = setTimeout(
          () =>
            fail(
              new HoldfastError(
                'result_timeout',
                `Job ${id} was not final after ${timeoutMs} ms. It goes on; ask again later.`,
              ),
            ),
          timeoutMs,
        )
      if (signal?.aborted) stop()
      signal?.addEventListener('abort', stop, { once: true })
    })
    return ended.finally(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      forget()
    })
  }

  return {
    wait,
    nudge: () => {
      if (waiters.size > 0) looker.wake()
    },
    start: async () => {},
    async stop() {
      isStopped = true
      for (const set of waiters.values())
        for (const waiter of set)
          waiter.reject(new HoldfastError('not_running', 'This Holdfast was closed while the result was awaited.'))
      waiters.clear()
      await looker.stop()
    },
  }
}
