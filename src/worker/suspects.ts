/**
 * Suspects: jobs that may be killing their workers. The invariant: a suspect is alone in its process from its claim to its settle, so that
 * neither pays for what the other does. It is claimed only by a worker that holds nothing, and such a worker then claims nothing else.
 *
 * Suspects must not starve where no worker is ever empty. If one has waited for long, one worker drains: it claims nothing until what it
 * runs has ended. Which one that is a row decides, one per kind. It claims the suspect only when it is empty: an attempt that never started
 * must not cost a life. Nor may the others starve: after a while of one suspect after the other, they have a turn.
 */
import type { Config } from '../config/config.ts'
import type { Runner } from '../store/store.ts'
import type { Hands } from './hands.ts'
import type { Lane } from './lanes.ts'
import type { Session } from './session.ts'
import { endDrain, takeDrain, waitingSuspect } from './suspect.sql.ts'

/** What the search for suspects needs. */
export interface SuspectsOptions {
  store: Runner
  config: Config
  lanes: Lane[]
  session: Session
  hands: Hands
  /** Claims one suspect, and says how many it got. */
  claimOne: () => Promise<number>
}

/** How often a worker looks for suspects: they are few. */
export const suspectEveryMs = 500
/** How long one suspect may follow the other while others wait. */
const inTurnMs = 2_000

/** How long a suspect waits for a worker that happens to be empty, before one drains for it. */
export const suspectPatienceMs = ({ pollMs }: Config): number => 2 * pollMs

/** Looks for suspects on behalf of a worker. */
export class Suspects {
  readonly #options: SuspectsOptions
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** Since when this worker has run nothing but suspects. */
  #sinceMs: number | null = null
  #isDraining = false

  constructor(options: SuspectsOptions) {
    this.#options = options
  }

  /** Looks, if nobody has for that long. Says whether this worker is kept for a suspect, and must claim nothing else. */
  async look(everyMs: number): Promise<boolean> {
    const { hands } = this.#options
    if (hands.hasSuspect) return true
    const nowMs = performance.now()
    const isReady = this.#isDraining && hands.isEmpty
    if (!isReady && nowMs - this.#lookedAtMs < everyMs) return this.#isDraining
    if (this.#sinceMs !== null && nowMs - this.#sinceMs > inTurnMs) return this.#letOthers()
    this.#lookedAtMs = nowMs
    return hands.isEmpty ? this.#take(nowMs) : this.#consider()
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
    await this.#drainNoMore()
    if (count === 0) return false
    this.#sinceMs ??= nowMs
    // where there is one there may be more
    this.#lookedAtMs = Number.NEGATIVE_INFINITY
    return true
  }

  /** Whether this busy worker should drain. */
  async #consider(): Promise<boolean> {
    const { store, config, lanes, session, hands } = this.#options
    const [waiting] = await store.run(waitingSuspect, { lanes })
    const isLong = waiting && waiting.waited_ms >= suspectPatienceMs(config)
    const [mine] = isLong ? await store.run(takeDrain, { ...waiting, sessionId: session.id() }) : []
    if (!mine) {
      await this.#drainNoMore()
      return false
    }
    this.#isDraining = true
    hands.releaseWaiting()
    return true
  }

  async #drainNoMore(): Promise<void> {
    if (!this.#isDraining) return
    this.#isDraining = false
    await this.#options.store.run(endDrain, { sessionId: this.#options.session.id() })
  }
}
