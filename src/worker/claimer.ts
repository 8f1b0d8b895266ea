import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import type { HeldFence } from '../job/id.ts'
import { type Loop, loop } from '../service/service.ts'
import { releaseJobs } from '../settle/settle.sql.ts'
import { runBatch } from '../store/batch.ts'
import { type Store, tellingRunner } from '../store/store.ts'
import { heldFenceOf } from './attempt.ts'
import { claimJobs, claimSuspects, fenceOfHeld, nextDue, unheldAttempts } from './claim.sql.ts'
import type { Taker } from './handover.ts'
import type { Hands } from './hands.ts'
import { deadlinesOf, type Lane, rotated } from './lanes.ts'
import { rowsOf } from './lot.ts'
import type { Pace } from './pace.ts'
import { wantWake } from './session.sql.ts'
import type { Session } from './session.ts'
import { Suspects, suspectEveryMs } from './suspects.ts'

/** Looks for work. */
export interface Claimer extends Loop {
  /** A place came free. Worth a look only if there may be more than there was room for. */
  roomCame(): void
  /** The session is (again) held, perhaps under another id. */
  sessionHeld(): void
}

/** What a claimer needs. */
export interface ClaimerOptions {
  store: Store
  config: Config
  jobs: readonly AnyJob[]
  lanes: Lane[]
  session: Session
  hands: Hands
  pace: Pace
  taker: Taker
  isBusConnected: () => boolean
  onTrouble: (error: unknown) => void
}

/** Makes the claimer of a worker. */
export function makeClaimer(options: ClaimerOptions): Claimer {
  const { config, lanes, session, hands, pace, taker } = options
  const store = tellingRunner(options.store, () => looking.beat())
  const deadlinesMs = deadlinesOf(options.jobs, config)
  let isHungry = true
  let isWakeWanted = false
  // whether a claim may have been carried out whose answer was lost: then there are attempts in our name that we don't know of
  let isClaimInDoubt = false
  let emptyTurns = 0
  let turns = 0
  let comparedAtMs = performance.now()
  const suspects = new Suspects({ ...options, store, claimOne: () => claim(claimSuspects, 1) })

  /** One look for work. Answers how long to wait before the next one. */
  async function turn(): Promise<number> {
    isHungry = true
    if (!session.isHeld()) return config.pollMs
    if (isClaimInDoubt || performance.now() - comparedAtMs >= config.heartbeatMs) await releaseUnheld()
    // who was woken for a job should not first look for what is rarely there; but nor may others keep taking its place
    if (await suspects.look(2 * suspectEveryMs)) return stayReserved()
    const most = hands.room()
    if (most <= 0) return config.pollMs
    const count = await claim(claimJobs, most)
    if (count > 0) suspects.othersTaken()
    if (await suspects.look(suspectEveryMs)) return stayReserved()
    if (count === most) {
      await askToBeWoken(false)
      return 0
    }
    isHungry = false
    if (count === 0) pace.reset(performance.now())
    emptyTurns = count === 0 ? emptyTurns + 1 : 0
    if (isWakeWanted) return napMs()
    // a submit that came between the look and the wish woke nobody, so look once more
    await askToBeWoken(true)
    return 1
  }

  async function claim(statement: typeof claimJobs, most: number): Promise<number> {
    const ticket = taker.beginClaim()
    if (ticket === null) return 0
    turns += 1
    isClaimInDoubt = true
    const sessionId = session.id()
    // only a handler can block this thread while the claim is under way; then the heartbeat thread gives back what comes of it
    const known = leasesOf(hands.held())
    if (known.length > 0) session.tell({ claiming: { ticket, sessionId, held: known.join() } })
    let isOurs = true
    const asked = { sessionId, lanes: rotated(lanes, turns), most, deadlinesMs }
    const lots = await store.run(statement, asked).finally(() => {
      isOurs = taker.endClaim()
    })
    const rows = rowsOf(lots, sessionId)
    if (isOurs) hands.take(rows, { isAlone: statement === claimSuspects })
    else await giveBack(rows.map(heldFenceOf))
    isClaimInDoubt = false
    return rows.length
  }

  /** A worker that is kept for a suspect takes nothing else, so nobody should try to wake it. */
  async function stayReserved(): Promise<number> {
    await askToBeWoken(false)
    return Math.min(config.pollMs, suspectEveryMs)
  }

  /**
   * Gives back what a claim took in our name without our hearing of it. A claim that we gave up may be carried out much later, when its
   * connection comes back to life, so this is asked again with every heartbeat; here no claim of ours is under way.
   */
  async function releaseUnheld(): Promise<void> {
    comparedAtMs = performance.now()
    const sessionId = session.id()
    const unheld = await store.run(unheldAttempts, { sessionId, leaseIds: leasesOf(hands.held()) })
    await giveBack(unheld.map(fenceOfHeld))
    isClaimInDoubt = false
  }

  /** One that can't be given back now must not keep us from claiming: it is found again with the next heartbeat. */
  async function giveBack(fences: HeldFence[]): Promise<void> {
    const told = await runBatch(store, {
      items: fences,
      leaseOf: ({ leaseId }) => leaseId,
      isWary: true,
      async run(runner, some) {
        await runner.run(releaseJobs, { fences: some })
        return some
      },
    })
    const refused = told.find(({ is }) => is === 'refused')
    if (refused && 'error' in refused) options.onTrouble(refused.error)
  }

  /** How long to nap: until the next due job, at most until the poll. */
  async function napMs(): Promise<number> {
    const patienceMs = options.isBusConnected() ? config.pollMs : Math.min(config.pollMs, 100)
    // a submit whose snapshot is older than our wish wakes nobody: the first looks after falling idle come sooner
    const soonMs = emptyTurns <= 4 ? 10 * 3 ** emptyTurns : patienceMs
    // for so short a nap it is not worth asking: whoever is woken meanwhile would have to wait for the answer
    if (emptyTurns === 0) return Math.min(patienceMs, soonMs)
    const [next] = await store.run(nextDue, { lanes })
    return Math.min(patienceMs, soonMs, next?.due_ms ?? patienceMs)
  }

  async function askToBeWoken(isWanted: boolean): Promise<void> {
    if (isWakeWanted === isWanted) return
    const id = session.id()
    await store.run(wantWake, { id, isWanted })
    // the wish of a session that was replaced meanwhile is not that of its successor
    if (session.id() === id) isWakeWanted = isWanted
  }

  const looking = loop({ turn, onError: options.onTrouble })
  return {
    ...looking,
    roomCame() {
      if (isHungry) looking.wake()
    },
    sessionHeld() {
      isWakeWanted = false
      looking.wake()
    },
  }
}

function leasesOf(fences: readonly HeldFence[]): number[] {
  return [...new Set(fences.map(({ leaseId }) => leaseId))]
}
