/**
 * Suspects: jobs that may be killing their workers. The invariant: a suspect is alone in its process from its claim to
 * its settle, so that no other job pays for what it does, and it doesn't pay for others. Only a worker that holds
 * nothing claims a suspect, and it then claims nothing else.
 *
 * Suspects must not starve where workers are never empty. If one has waited for long, one worker drains: it claims
 * nothing until its running attempts have ended. A row per kind decides which worker that is. It claims the suspect
 * only once it is empty, because an attempt that never started must not use up crash budget. Other jobs must not starve
 * either: after a while of one suspect after another, they get a turn.
 *
 * An outcome whose row a stranger keeps locked must not reserve its worker for as long as the lock lasts. So a worker
 * with such outcomes claims other jobs. A suspect that kills it would cost those attempts a crash and a second run, so
 * it is the last to take one: when the suspect has waited so long that no other worker seems to be there.
 */
import type { Config } from '../config/config.ts'
import type { Runner } from '../postgres/store.ts'
import type { AttemptPool } from './attempt-pool.ts'
import type { Lane } from './lanes.ts'
import type { Session } from './session.ts'
import { endDrain, takeDrain, waitingSuspect } from './suspect.sql.ts'

/** What the search for suspects needs. */
export interface SuspectsOptions {
  store: Runner
  config: Config
  /** The lanes for whose suspects it may drain. */
  lanes: () => Lane[]
  session: Session
  attemptPool: AttemptPool
  /** Claims one suspect. Resolves with how many it got. */
  claimOne: () => Promise<number>
}

/** How often a worker looks for suspects: they are few. */
export const suspectEveryMs = 500
/** How long a worker may run one suspect after another while other jobs wait. */
const inTurnMs = 2_000

/** How long a suspect waits for a worker that happens to be empty before one drains for it. */
export const suspectPatienceMs = ({ pollMs }: Config): number => 2 * pollMs
/** The least that it waits for a worker without late outcomes. */
const latePatienceMs = 30_000

/** Looks for suspects on behalf of a claimer. */
export class Suspects {
  readonly #options: SuspectsOptions
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** Since when this worker has been running nothing but suspects. */
  #sinceMs: number | null = null
  #isDraining = false

  constructor(options: SuspectsOptions) {
    this.#options = options
  }

  /**
   * Looks, unless the last look is more recent than that. Resolves with whether this worker is reserved for a suspect
   * and must claim nothing else.
   */
  async look(everyMs: number): Promise<boolean> {
    const { attemptPool } = this.#options
    if (attemptPool.hasSuspect) return true
    const nowMs = performance.now()
    const isReady = this.#isDraining && attemptPool.isIdle
    if (!isReady && nowMs - this.#lookedAtMs < everyMs) return this.#isDraining
    if (this.#sinceMs !== null && nowMs - this.#sinceMs > inTurnMs) return this.#letOthers()
    this.#lookedAtMs = nowMs
    return attemptPool.isEmpty ? this.#take(nowMs) : this.#consider(nowMs)
  }

  /** Other jobs were claimed. */
  othersTaken(): void {
    this.#sinceMs = null
  }

  #letOthers(): boolean {
    this.#sinceMs = null
    return false
  }

  async #take(nowMs: number): Promise<boolean> {
    const count = await this.#options.claimOne()
    await this.#endDrain()
    if (count === 0) return false
    this.#sinceMs ??= nowMs
    // where there is one, there may be more
    this.#lookedAtMs = Number.NEGATIVE_INFINITY
    return true
  }

  /** Decides whether this busy worker should drain, or take a suspect although it has late outcomes. */
  async #consider(nowMs: number): Promise<boolean> {
    const { store, lanes, session, attemptPool } = this.#options
    const [waiting] = await store.run(waitingSuspect, { lanes: lanes() })
    const isLong = waiting && waiting.waited_ms >= this.#patienceMs()
    const [mine] = isLong ? await store.run(takeDrain, { ...waiting, sessionId: session.id() }) : []
    if (!mine) {
      await this.#endDrain()
      return false
    }
    this.#isDraining = true
    attemptPool.releaseWaiting()
    return attemptPool.isIdle ? this.#take(nowMs) : true
  }

  #patienceMs(): number {
    const { config, attemptPool } = this.#options
    return attemptPool.late > 0 ? Math.max(latePatienceMs, suspectPatienceMs(config)) : suspectPatienceMs(config)
  }

  async #endDrain(): Promise<void> {
    if (!this.#isDraining) return
    this.#isDraining = false
    await this.#options.store.run(endDrain, { sessionId: this.#options.session.id() })
  }
}
