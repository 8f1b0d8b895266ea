import type { Fence, HeldFence } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { recordRefusals } from '../settle/settle.sql.ts'
import type { AttemptPool } from './attempt-pool.ts'
import { lostAttempts } from './claim.sql.ts'
import type { WorkerObserver } from './observer.ts'

/** What it takes to find lost attempts. */
export interface LostAttemptsOptions {
  store: Store
  attemptPool: AttemptPool
  everyMs: number
  observer: Pick<WorkerObserver, 'refused' | 'onError'>
}

/** Attempts in the pool that no longer belong to this worker: their jobs were cancelled, or revived by the reaper. */
export class LostAttempts implements Service {
  readonly #options: LostAttemptsOptions
  readonly #loop: Loop

  constructor(options: LostAttemptsOptions) {
    this.#options = options
    this.#loop = loop({ turn: () => this.#abort(), onError: options.observer.onError })
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  wake(): void {
    this.#loop.wake()
  }

  quietMs(): number {
    return this.#loop.quietMs()
  }

  /** A write about these attempts was refused, so they are lost, and others may be as well. */
  refused(fences: Fence[], write: string): void {
    this.#options.observer.refused(fences, write)
    this.#loop.wake()
  }

  /** The same for writes other than outcomes, whose refusals the settler records itself. */
  refusedUnrecorded(fences: HeldFence[], write: string): void {
    if (fences.length === 0) return
    const { store, observer } = this.#options
    this.refused(fences, write)
    for (const sessionId of new Set(fences.map((fence) => fence.sessionId))) {
      const own = fences.filter((fence) => fence.sessionId === sessionId)
      store.run(recordRefusals, { fences: own, sessionId, write }).catch(observer.onError)
    }
  }

  async #abort(): Promise<number> {
    const { store, attemptPool, everyMs } = this.#options
    const fences = attemptPool.held()
    if (fences.length > 0) attemptPool.abortLost(await store.run(lostAttempts, { fences }))
    return everyMs
  }
}
