/**
 * Attempts that the database holds in this session's name without this worker knowing. They arise in two ways: the
 * answer to a claim was lost, perhaps of a claim that is carried out much later, when its connection comes back to
 * life; or a heartbeat thread died before it had released what it took from the main thread. Nobody would run them, so
 * this worker compares what it holds with the database after every doubtful claim and at every heartbeat, and releases
 * the rest. It does so only while none of its claims is under way.
 */
import type { HeldFence } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import { releaseJobs } from '../settle/settle.sql.ts'
import { runBatch } from '../transitions/batch.ts'
import { masksOf } from '../transitions/leases.sql.ts'
import type { AttemptPool } from './attempt-pool.ts'
import { fenceOfHeld, unheldAttempts } from './claim.sql.ts'
import type { Session } from './session.ts'

/** What it takes to find and release them. */
export interface UnheldAttemptsOptions {
  store: Store
  session: Session
  attemptPool: AttemptPool
  everyMs: number
  onError: (error: unknown) => void
}

/** Finds and releases attempts in this session's name that the pool doesn't hold. */
export class UnheldAttempts {
  readonly #options: UnheldAttemptsOptions
  #isClaimInDoubt = false
  #comparedAtMs = performance.now()

  constructor(options: UnheldAttemptsOptions) {
    this.#options = options
  }

  /** Whether it is time to compare. */
  get isDue(): boolean {
    return this.#isClaimInDoubt || performance.now() - this.#comparedAtMs >= this.#options.everyMs
  }

  /** Until `claimEnded`, the database may have carried out a claim whose answer is lost. */
  claimBegan(): void {
    this.#isClaimInDoubt = true
  }

  claimEnded(): void {
    this.#isClaimInDoubt = false
  }

  async findAndRelease(): Promise<void> {
    const { store, session, attemptPool } = this.#options
    this.#comparedAtMs = performance.now()
    const sessionId = session.id()
    const unheld = await store.run(unheldAttempts, { sessionId, ...masksOf(attemptPool.held()) })
    await this.release(unheld.map(fenceOfHeld))
    this.#isClaimInDoubt = false
  }

  /** Releases attempts. One that can't be released now must not block claims: the next comparison finds it again. */
  async release(fences: HeldFence[]): Promise<void> {
    const told = await runBatch(this.#options.store, {
      items: fences,
      needOf: ({ id, leaseId }) => ({ id, leaseId, barrier: 'none' }),
      isWary: true,
      async run(runner, some) {
        await runner.run(releaseJobs, { fences: some })
        return some
      },
    })
    const refused = told.find(({ is }) => is === 'refused')
    if (refused && 'error' in refused) this.#options.onError(refused.error)
  }
}
