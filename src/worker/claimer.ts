import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import { type Store, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import type { ClaimBatch } from '../transitions/claim.sql.ts'
import { heldFenceOf } from './attempt.ts'
import type { AttemptPool } from './attempt-pool.ts'
import { type Claim, claimJobs, claimSuspects, nextDue } from './claim.sql.ts'
import { rowsOf, sizeOf } from './claim-batch.ts'
import { Floors } from './floors.ts'
import { claimGated, type LookRow } from './gated-claim.sql.ts'
import { type GatedLane, GatedLanes, gatesOf, noGates } from './gated-lanes.ts'
import type { Taker } from './handover.ts'
import { deadlinesOf, type Lane, rotated } from './lanes.ts'
import type { PrefetchSize } from './prefetch-size.ts'
import { wantWake } from './session.sql.ts'
import type { Session } from './session.ts'
import { Suspects, suspectEveryMs } from './suspects.ts'
import {
  mayBeUnclaimable,
  postponeUnclaimable,
  postponeUnclaimableAtGates,
  type TrialParts,
} from './unclaimable.ts'
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

/** What a claim led to. `isFilled`: there may be more than it had room for. */
interface Taken {
  count: number
  isFilled: boolean
}

/** What every claim asks for. */
type Mine = Pick<Claim, 'sessionId' | 'most' | 'mostBytes' | 'deadlinesMs'>

/** One of the ways to claim. */
interface Asking {
  most: number
  /** Whether it claims a suspect. */
  isAlone?: boolean
  run: (mine: Mine) => Promise<ClaimBatch[]>
  /** Postpones jobs that can't be claimed. */
  tryApart: (mine: Mine) => Promise<unknown>
  onTaken?: (batches: ClaimBatch[], isFilled: boolean) => void
}

/** Looks for due jobs and fills the attempt pool with them. */
export class Claimer implements Service {
  readonly #options: ClaimerOptions
  readonly #loop: Loop
  readonly #store: Store
  readonly #deadlinesMs: string
  readonly #floors = new Floors()
  readonly #suspects: Suspects
  readonly #unheld: UnheldAttempts
  readonly #gatedLanes: GatedLanes
  #gates = noGates
  #fruitless = 0
  #turns = 0
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
    this.#suspects = new Suspects({ ...options, store: this.#store, claimOne: () => this.#claimSuspect() })
    this.#gatedLanes = new GatedLanes(options.lanes)
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
    const { count, isFilled } = await this.#claimBoth(most)
    if (count > 0) this.#suspects.othersTaken()
    if (await this.#suspects.look(suspectEveryMs)) return this.#stayReserved()
    if (isFilled) return this.#goOn()
    return this.#gates.isMore ? this.#lookAgain(count) : this.#rest(count)
  }

  /** Claims jobs without limits and jobs at gates. They take turns in coming first, so that neither starves the other. */
  async #claimBoth(most: number): Promise<Taken> {
    const gated = await this.#gatedLanes.next(this.#store)
    if (gated.length === 0) {
      this.#gates = noGates
      return this.#claimLanes(most)
    }
    const isGatedFirst = this.#turns++ % 2 === 0
    const first = isGatedFirst ? await this.#claimGated(gated, most) : await this.#claimLanes(most)
    if (first.isFilled) return first
    const left = most - first.count
    const second = isGatedFirst ? await this.#claimLanes(left) : await this.#claimGated(gated, left)
    return { count: first.count + second.count, isFilled: second.isFilled }
  }

  #claimLanes(most: number): Promise<Taken> {
    const startedMs = performance.now()
    const { isFull, ...look } = this.#floors.look(this.#options.lanes, startedMs)
    return this.#take({
      most,
      run: (mine) => this.#store.run(claimJobs, { ...mine, ...look }),
      tryApart: (mine) => postponeUnclaimable(this.#trialParts(), { ...mine, ...look }),
      onTaken: (batches, isFilled) => {
        const nowMs = performance.now()
        this.#floors.raise(batches, { isFull, isFilled, ms: nowMs - startedMs, nowMs })
      },
    })
  }

  /** Suspects are few and have their own index, so they need no floors. */
  async #claimSuspect(): Promise<number> {
    const lanes = rotated(this.#options.lanes, this.#suspectClaims++)
    const { count } = await this.#take({
      most: 1,
      isAlone: true,
      run: (mine) => this.#store.run(claimSuspects, { ...mine, lanes }),
      tryApart: (mine) => postponeUnclaimable(this.#trialParts(), { ...mine, lanes }),
    })
    if (count > 0 || !this.#gatedLanes.isAny) return count
    return (await this.#claimGated(await this.#gatedLanes.next(this.#store), 1, true)).count
  }

  #claimGated(lanes: GatedLane[], most: number, isSuspect = false): Promise<Taken> {
    const look = { lanes, isSuspect, after: this.#gates.after }
    return this.#take({
      most,
      isAlone: isSuspect,
      run: async (mine) => {
        const rows = await this.#store.run(claimGated, { ...mine, ...look })
        if (!isSuspect) this.#gates = gatesOf(rows.find((row) => row.lease_id === null) as LookRow | undefined)
        return rows.filter((row): row is ClaimBatch => row.lease_id !== null)
      },
      tryApart: (mine) => postponeUnclaimableAtGates(this.#trialParts(), { ...mine, ...look, isRemote: false }),
    })
  }

  /** Runs a claim, and takes what it returns. */
  async #take({ most, isAlone = false, run, tryApart, onTaken }: Asking): Promise<Taken> {
    const { session, attemptPool, taker } = this.#options
    const ticket = taker.beginClaim()
    if (ticket === null) return { count: 0, isFilled: false }
    this.#unheld.claimBegan()
    const sessionId = session.id()
    this.#announceClaim(ticket, sessionId)
    let isOurs = true
    const mine: Mine = { sessionId, most, mostBytes: attemptPool.roomBytes(), deadlinesMs: this.#deadlinesMs }
    const claimed = run(mine).finally(() => {
      isOurs = taker.endClaim()
    })
    const batches = await claimed.catch((error) => claimFailed(error, () => tryApart(mine)))
    const rows = rowsOf(batches, sessionId)
    // a claim that took many bytes may have left the next job because of its size
    const isFilled = rows.length === most || rows.reduce((sum, row) => sum + sizeOf(row), 0) >= mine.mostBytes / 2
    onTaken?.(batches, isFilled)
    if (isOurs) attemptPool.take(rows, { isAlone })
    else await this.#unheld.release(rows.map(heldFenceOf))
    this.#unheld.claimEnded()
    return { count: rows.length, isFilled }
  }

  #trialParts(): TrialParts {
    return { store: this.#store, onError: this.#options.onError }
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

  /** Gates are left, but other claims hold them, or this one had too many to look at. */
  #lookAgain(count: number): number {
    this.#fruitless = count === 0 ? this.#fruitless + 1 : 0
    return Math.min(this.#options.config.pollMs, 2 ** Math.min(this.#fruitless, 8) * (0.5 + Math.random()))
  }

  /** There was no more to claim. */
  async #rest(count: number): Promise<number> {
    this.#mayBeMore = false
    this.#fruitless = 0
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
    return Math.min(patienceMs, soonMs, next?.due_ms ?? patienceMs, this.#gates.dueMs)
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

/** One job that can't be claimed must not keep all others from being claimed. */
async function claimFailed(error: unknown, tryApart: () => Promise<unknown>): Promise<never> {
  if (mayBeUnclaimable(error)) await tryApart()
  throw error
}
