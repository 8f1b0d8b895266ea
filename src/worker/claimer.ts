import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import { type Store, tellingRunner } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import type { NamedLane } from './apart-lanes.ts'
import { heldFenceOf } from './attempt.ts'
import type { AttemptPool } from './attempt-pool.ts'
import { nextDue } from './claim.sql.ts'
import { rowsOf, sizeOf } from './claim-batch.ts'
import { type Asking, type ClaimWay, GatesWay, JobsWay, type Mine, SuspectsWay } from './claim-ways.ts'
import { GatedLanes } from './gated-lanes.ts'
import type { Taker } from './handover.ts'
import { deadlinesOf, type Lane } from './lanes.ts'
import type { PrefetchSize } from './prefetch-size.ts'
import { wantWake } from './session.sql.ts'
import type { Session } from './session.ts'
import { Suspects, suspectEveryMs } from './suspects.ts'
import { mayBeUnclaimable } from './unclaimable.ts'
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

/** After how many looks in a row at gates that others hold it asks for wake-ups, as an idle worker does. */
const mostFruitless = 4

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
  readonly #gated: GatedLanes
  readonly #ways: { jobs: JobsWay; gates: GatesWay; suspects: SuspectsWay; gatedSuspects: GatesWay }
  readonly #suspects: Suspects
  readonly #unheld: UnheldAttempts
  /** How many looks at gates in a row found none that they could use. */
  #fruitless = 0
  #turns = 0
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
    this.#gated = new GatedLanes(options.lanes)
    this.#ways = this.#makeWays()
    this.#suspects = new Suspects({
      ...options,
      store: this.#store,
      lanes: () => this.#suspectLanes(),
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
    const { count, isFilled } = await this.#claimBoth(most)
    if (count > 0) this.#suspects.othersTaken()
    if (await this.#suspects.look(suspectEveryMs)) return this.#stayReserved()
    if (isFilled) return this.#goOn()
    return this.#ways.gates.isMore ? this.#lookAgain(count) : this.#rest(count)
  }

  #makeWays() {
    const { lanes, onError } = this.#options
    const parts = { store: this.#store, onError }
    return {
      jobs: new JobsWay(parts, lanes),
      gates: new GatesWay(parts, { gated: this.#gated, isSuspect: false }),
      suspects: new SuspectsWay(parts, lanes),
      gatedSuspects: new GatesWay(parts, { gated: this.#gated, isSuspect: true }),
    }
  }

  /** Claims jobs without limits and jobs at gates. They take turns in coming first, so that neither starves the other. */
  async #claimBoth(most: number): Promise<Claimed> {
    const { jobs, gates } = this.#ways
    if (!(await this.#gated.refresh(this.#store))) return this.#claim(jobs, most)
    const isGatedFirst = this.#turns++ % 2 === 0
    const first = await (isGatedFirst ? this.#claim(gates, most) : this.#claim(jobs, most))
    if (first.isFilled) return first
    const left = most - first.count
    const second = await (isGatedFirst ? this.#claim(jobs, left) : this.#claim(gates, left))
    return { count: first.count + second.count, isFilled: second.isFilled }
  }

  /** It would be in vain to drain for suspects that can't be claimed. */
  #suspectLanes(): Lane[] {
    const { suspects, gatedSuspects } = this.#ways
    return gatedSuspects.apart.together(suspects.apart.together(this.#options.lanes))
  }

  async #claimSuspect(): Promise<number> {
    const { suspects, gatedSuspects } = this.#ways
    const { count } = await this.#claim(suspects, 1)
    if (count > 0 || !(await this.#gated.refresh(this.#store))) return count
    return (await this.#claim(gatedSuspects, 1)).count
  }

  async #claim<L extends NamedLane>(way: ClaimWay<L>, most: number): Promise<Claimed> {
    return (await this.#claimApart(way, most)) ?? this.#take(way, most)
  }

  /** Claims a lane in which claims have failed, if it is time. Null if it took nothing: whatever the reason, the other lanes must not wait. */
  async #claimApart<L extends NamedLane>(way: ClaimWay<L>, most: number): Promise<Claimed | null> {
    const startedMs = performance.now()
    const lane = way.apart.next(way.lanes(), startedMs)
    if (!lane) return null
    try {
      const { count } = await this.#take(way, most, lane)
      way.apart.remove(lane)
      // the next claim covers all lanes, and must not wait
      return count > 0 ? { count, isFilled: true } : null
    } catch (error) {
      if (!mayBeUnclaimable(error)) throw error
      this.#options.onError(error)
      const nowMs = performance.now()
      way.apart.add([lane], { nowMs, tookMs: nowMs - startedMs })
      return null
    }
  }

  /** Makes a claim, of one lane alone or of all that can be claimed together, and takes what it returns. */
  async #take<L extends NamedLane>(way: ClaimWay<L>, most: number, alone?: L): Promise<Claimed> {
    const { session, attemptPool, taker } = this.#options
    const ticket = taker.beginClaim()
    if (ticket === null) return { count: 0, isFilled: false }
    this.#unheld.claimBegan()
    const sessionId = session.id()
    this.#announceClaim(ticket, sessionId)
    let isOurs = true
    const mine: Mine = { sessionId, most, mostBytes: attemptPool.roomBytes(), deadlinesMs: this.#deadlinesMs }
    const asking = way.ask(alone)
    const claimed = asking.run(mine).finally(() => {
      isOurs = taker.endClaim()
    })
    const batches = await claimed.catch((error) => claimFailed(way, asking, { error, mine }))
    const rows = rowsOf(batches, sessionId)
    // a claim that took many bytes may have left the next job because of its size
    const isFilled = rows.length === most || rows.reduce((sum, row) => sum + sizeOf(row), 0) >= mine.mostBytes / 2
    asking.onTaken?.(batches, isFilled)
    if (isOurs) attemptPool.take(rows, { isAlone: way.isSuspect })
    else await this.#unheld.release(rows.map(heldFenceOf))
    this.#unheld.claimEnded()
    return { count: rows.length, isFilled }
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
  async #lookAgain(count: number): Promise<number> {
    this.#fruitless = count === 0 ? this.#fruitless + 1 : 0
    // a claim holds a gate for milliseconds; a stranger may hold one for hours, and other jobs must not wait for the next look
    if (this.#fruitless > mostFruitless) await this.#setWakeWanted(true)
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
    return Math.min(patienceMs, soonMs, next?.due_ms ?? patienceMs, this.#ways.gates.dueMs)
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

/** Jobs that can't be claimed must not keep all others from being claimed. */
async function claimFailed<L extends NamedLane>(
  way: ClaimWay<L>,
  asking: Asking<L>,
  { error, mine }: { error: unknown; mine: Mine },
): Promise<never> {
  if (!mayBeUnclaimable(error)) throw error
  const startedMs = performance.now()
  const { lanes } = await asking.postpone(mine)
  const nowMs = performance.now()
  way.apart.add(lanes, { nowMs, tookMs: nowMs - startedMs })
  throw error
}
