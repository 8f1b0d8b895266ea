import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import { type Store, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { ApartLanes } from './apart-lanes.ts'
import { heldFenceOf } from './attempt.ts'
import type { AttemptPool } from './attempt-pool.ts'
import { type Claim, claimJobs, claimSuspects, nextDue } from './claim.sql.ts'
import { rowsOf, sizeOf } from './claim-batch.ts'
import { Floors, type Look } from './floors.ts'
import type { Taker } from './handover.ts'
import { deadlinesOf, type Lane, rotated } from './lanes.ts'
import type { PrefetchSize } from './prefetch-size.ts'
import { wantWake } from './session.sql.ts'
import type { Session } from './session.ts'
import { Suspects, suspectEveryMs } from './suspects.ts'
import { mayBeUnclaimable, postponeUnclaimable } from './unclaimable.ts'
import { UnheldAttempts } from './unheld-attempts.ts'

/** What a claimer needs. */
export interface ClaimerOptions {
  store: Store
  config: Config
  jobs: readonly AnyJob[]
  lanes: Lane[]
  session: Session
  attemptPool: AttemptPool
  prefetchSize: PrefetchSize
  taker: Taker
  isBusConnected: () => boolean
  onError: (error: unknown) => void
}

/** How long asking for wake-ups may take. Only a foreign transaction can lock our row, and there is always polling. */
const wakeWriteMs = 1_000

/**
 * How many jobs one claim takes. In a larger lease it would be slow to find one job. A worker that has room for more
 * claims again at once.
 */
const mostAtOnce = 1_000

/** What a claim took. `isFilled`: there may be more. */
interface Claimed {
  count: number
  isFilled: boolean
}

/** Looks for due jobs and fills the attempt pool with them. */
export class Claimer implements Service {
  readonly #options: ClaimerOptions
  readonly #loop: Loop
  readonly #store: Store
  readonly #deadlinesMs: string
  readonly #floors = new Floors()
  /** Lanes in which claims fail, of suspects and of all others. */
  readonly #apart = { suspects: new ApartLanes(), others: new ApartLanes() }
  readonly #suspects: Suspects
  readonly #unheld: UnheldAttempts
  #suspectClaims = 0
  /** Whether there may be more due jobs than the last claim had room for. */
  #mayBeMore = true
  #isWakeWanted = false
  #emptyTurns = 0

  constructor(options: ClaimerOptions) {
    const { config, session, attemptPool, onError } = options
    this.#options = options
    this.#loop = loop({ turn: () => this.#turn(), onError })
    this.#store = tellingRunner(options.store, () => this.#loop.beat())
    this.#deadlinesMs = deadlinesOf(options.jobs, config)
    this.#suspects = new Suspects({
      ...options,
      store: this.#store,
      // it would be in vain to drain for suspects that can't be claimed
      lanes: () => this.#apart.suspects.together(options.lanes),
      claimOne: () => this.#claimSuspect(),
    })
    this.#unheld = new UnheldAttempts({
      store: this.#store,
      session,
      attemptPool,
      everyMs: config.heartbeatMs,
      onError,
    })
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

  /** There is room for more jobs. */
  roomFreed(): void {
    if (this.#mayBeMore) this.#loop.wake()
  }

  /** The lease is valid (again), perhaps under a new session, which hasn't asked for wake-ups yet. */
  leaseHeld(): void {
    this.#isWakeWanted = false
    this.#loop.wake()
  }

  /** Looks for jobs once. Resolves with how long to wait before the next turn. */
  async #turn(): Promise<number> {
    const { config, session, attemptPool } = this.#options
    this.#mayBeMore = true
    if (!session.isHeld()) return config.pollMs
    if (this.#unheld.isDue) await this.#unheld.findAndRelease()
    // a woken worker should first claim the job that it was woken for, but suspects must not starve
    if (await this.#suspects.look(2 * suspectEveryMs)) return this.#stayReserved()
    const most = Math.min(attemptPool.room(), mostAtOnce)
    if (most <= 0) return config.pollMs
    const apart = await this.#claimApart(claimJobs, most)
    const { count, isFilled } = apart ?? (await this.#claim(claimJobs, most))
    if (count > 0) this.#suspects.othersTaken()
    if (await this.#suspects.look(suspectEveryMs)) return this.#stayReserved()
    return isFilled ? this.#goOn() : this.#rest(count)
  }

  async #claimSuspect(): Promise<number> {
    const { count } = (await this.#claimApart(claimSuspects, 1)) ?? (await this.#claim(claimSuspects, 1))
    return count
  }

  /** Claims a lane in which claims have failed, if it is time. Null if it took nothing: whatever the reason, the other lanes must not wait. */
  async #claimApart(statement: typeof claimJobs, most: number): Promise<Claimed | null> {
    const { lanes, onError } = this.#options
    const apart = this.#apartOf(statement)
    const startedMs = performance.now()
    const lane = apart.next(lanes, startedMs)
    if (!lane) return null
    try {
      const { count } = await this.#claim(statement, most, lane)
      apart.remove(lane)
      // the next claim covers all lanes, and must not wait
      return count > 0 ? { count, isFilled: true } : null
    } catch (error) {
      if (!mayBeUnclaimable(error)) throw error
      onError(error)
      const nowMs = performance.now()
      apart.add([lane], { nowMs, tookMs: nowMs - startedMs })
      return null
    }
  }

  async #claim(statement: typeof claimJobs, most: number, alone?: Lane): Promise<Claimed> {
    const { session, attemptPool, taker } = this.#options
    const ticket = taker.beginClaim()
    if (ticket === null) return { count: 0, isFilled: false }
    this.#unheld.claimBegan()
    const sessionId = session.id()
    this.#announceClaim(ticket, sessionId)
    let isOurs = true
    const startedMs = performance.now()
    const look = this.#lookOf(statement, startedMs, alone)
    const params = {
      sessionId,
      lanes: look.lanes,
      floors: look.floors,
      most,
      mostBytes: attemptPool.roomBytes(),
      deadlinesMs: this.#deadlinesMs,
    }
    const claimed = this.#store.run(statement, params).finally(() => {
      isOurs = taker.endClaim()
    })
    const batches = await claimed.catch((error) => this.#claimFailed(error, statement, params))
    const rows = rowsOf(batches, sessionId)
    const nowMs = performance.now()
    // a claim that took many bytes may have left the next job because of its size
    const isFilled = rows.length === most || rows.reduce((sum, row) => sum + sizeOf(row), 0) >= params.mostBytes / 2
    if (statement === claimJobs && !alone)
      this.#floors.raise(batches, { isFull: look.isFull, isFilled, ms: nowMs - startedMs, nowMs })
    if (isOurs) attemptPool.take(rows, { isAlone: statement === claimSuspects })
    else await this.#unheld.release(rows.map(heldFenceOf))
    this.#unheld.claimEnded()
    return { count: rows.length, isFilled }
  }

  #apartOf(statement: typeof claimJobs): ApartLanes {
    return statement === claimSuspects ? this.#apart.suspects : this.#apart.others
  }

  #lookOf(statement: typeof claimJobs, nowMs: number, alone: Lane | undefined): Look {
    const { lanes } = this.#options
    if (alone) return { lanes: [alone], floors: [], isFull: false }
    const apart = this.#apartOf(statement)
    if (statement === claimJobs) return this.#floors.look(lanes, nowMs, (all) => apart.together(all))
    // suspects are few and have their own index, so they need no floors
    return { lanes: apart.together(rotated(lanes, this.#suspectClaims++)), floors: [], isFull: false }
  }

  /** Jobs that can't be claimed must not keep all others from being claimed. */
  async #claimFailed(error: unknown, statement: typeof claimJobs, params: Claim): Promise<never> {
    if (!mayBeUnclaimable(error)) throw error
    const startedMs = performance.now()
    const apart = this.#apartOf(statement)
    const searches = Math.max(...params.lanes.map((lane) => apart.failuresOf(lane)))
    const found = await postponeUnclaimable({ ...this.#options, store: this.#store }, params, searches)
    const nowMs = performance.now()
    apart.add(found.lanes, { nowMs, tookMs: nowMs - startedMs })
    throw error
  }

  /** If a handler blocks this thread during the claim, the heartbeat thread releases what the claim takes. */
  #announceClaim(ticket: number, sessionId: number): void {
    const { session, attemptPool } = this.#options
    const known = new Set(attemptPool.held().map(({ leaseId }) => leaseId))
    // only a handler can block this thread, and without leases no handler runs
    if (known.size > 0) session.tell({ claiming: { ticket, sessionId, held: [...known].join() } })
  }

  /** The claim was filled, so there may be more. */
  async #goOn(): Promise<number> {
    await this.#setWakeWanted(false)
    return 0
  }

  /** There was no more to claim. */
  async #rest(count: number): Promise<number> {
    this.#mayBeMore = false
    if (count === 0) this.#options.prefetchSize.reset(performance.now())
    this.#emptyTurns = count === 0 ? this.#emptyTurns + 1 : 0
    if (this.#isWakeWanted) return this.#napMs()
    // a submit between the claim and this request wakes nobody, so look once more
    await this.#setWakeWanted(true)
    return 1
  }

  /** A worker that is reserved for a suspect claims nothing else, so it must not be woken. */
  async #stayReserved(): Promise<number> {
    await this.#setWakeWanted(false)
    return Math.min(this.#options.config.pollMs, suspectEveryMs)
  }

  /** How long to nap: until the next job is due, and at most until the next poll. */
  async #napMs(): Promise<number> {
    const { config, lanes, isBusConnected } = this.#options
    const patienceMs = isBusConnected() ? config.pollMs : Math.min(config.pollMs, 100)
    // a submit whose snapshot is older than our request wakes nobody, so the first naps after falling idle are short
    const soonMs = this.#emptyTurns <= 4 ? 10 * 3 ** this.#emptyTurns : patienceMs
    // before a nap this short, don't ask: a wake-up in the meantime would have to wait for the answer
    if (this.#emptyTurns === 0) return Math.min(patienceMs, soonMs)
    const [next] = await this.#store.run(nextDue, { lanes })
    return Math.min(patienceMs, soonMs, next?.due_ms ?? patienceMs)
  }

  async #setWakeWanted(isWanted: boolean): Promise<void> {
    if (this.#isWakeWanted === isWanted) return
    const { session } = this.#options
    const id = session.id()
    await this.#store.run(wantWake, { id, isWanted }, wakeWriteMs)
    // if the session was replaced in the meantime, the new one hasn't asked for anything
    if (session.id() === id) this.#isWakeWanted = isWanted
  }
}
