// Sends what is due. The invariant: a delivery is pending until its outcome is written, and a pending delivery becomes due again by itself.
//
// Any number of processes send. A claim sets next_at to when the claim ends, and raises tries, which is the fence of the sender. A process
// that dies at any moment leaves a row that the next claim finds. So a receiver may get an event twice, always with the same id and the same
// bytes, but never misses one.
import { setMaxListeners } from 'node:events'
import type { Wakeups } from '../events/wakeups.ts'
import type { Store } from '../postgres/store.ts'
import { type Group, group } from '../service/group.ts'
import { type Loop, loop, type Service, within } from '../service/service.ts'
import { isNobodys, runBatch, type Told } from '../transitions/batch.ts'
import { type ClaimedDelivery, type ClaimRoom, claimDeliveries, type DeliveryClaim, oldestDue } from './claim.sql.ts'
import { type SwitchedOff, type Tried, writeTries } from './delivery.sql.ts'
import type { Lanes } from './lanes.ts'
import { type Clock, type SendParts, send } from './send.ts'
import { type ClaimedApart, Unclaimable } from './unclaimable.ts'

/** What a sender needs. */
export interface SenderParts extends SendParts {
  store: Store
  wakeups: Wakeups
  /** What is in flight in this process, including tests. */
  lanes: Lanes
  timeoutMs: number
  giveUpMs: number
  pollMs: number
  observer: SenderObserver
}

/** What a sender reports. */
export interface SenderObserver {
  ended(outcome: 'delivered' | 'retry' | 'dead', delivery: ClaimedDelivery, error: string | null): void
  /** An outcome was not written, because another sender has the delivery by now. */
  refused(delivery: ClaimedDelivery): void
  switchedOff(endpoint: SwitchedOff): void
  oldest(lateMs: number): void
  onError(error: unknown): void
}

/** How many deliveries one process sends at once. */
export const mostInFlight = 512
/** The wait before a tenant's further lanes are searched, if it has very many. */
const furtherMs = 20
/** How much longer than a request a claim lasts. */
export const claimSlackMs = 5_000
/** How long deliveries in flight may take to end when the sender stops. */
const graceMs = 2_000
const lookEveryMs = 5_000

interface Ended {
  row: ClaimedDelivery
  tried: Tried
}

/** Sends the deliveries that are due. */
export class Sender implements Service {
  readonly #parts: SenderParts
  readonly #sending: Loop
  readonly #outcomes: Group<Ended, undefined>
  readonly #unclaimable: Unclaimable
  readonly #inFlight = new Set<Promise<void>>()
  #leaving = new AbortController()
  /** The last lane that was searched, for tenants that have more lanes than one claim searches. */
  #cursors = new Map<string, string>()
  #looking: Promise<void> | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #unhear: (() => Promise<void>) | undefined

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#sending = loop({ turn: () => this.#turn(), onError: parts.observer.onError })
    this.#unclaimable = new Unclaimable({ ...parts, onError: parts.observer.onError })
    this.#outcomes = group({ most: 200, lanes: 2, write: (ended) => write(parts, ended) })
  }

  async start(): Promise<void> {
    if (this.#unhear) return
    this.#leaving = new AbortController()
    // each delivery in flight listens, and that is not a leak
    setMaxListeners(mostInFlight + 1, this.#leaving.signal)
    this.#unhear = this.#parts.wakeups.hear(() => this.wake())
    await this.#sending.start()
  }

  async stop(): Promise<void> {
    await this.#sending.stop()
    if (this.#inFlight.size > 0 && !(await within(graceMs, Promise.all(this.#inFlight)))) this.#leaving.abort()
    await Promise.all(this.#inFlight)
    await this.#outcomes.idle()
    await this.#looking
    await this.#unhear?.()
    this.#unhear = undefined
  }

  /** There may be something to send. */
  wake(): void {
    this.#sending.wake()
  }

  async #turn(): Promise<number> {
    const { lanes, timeoutMs, pollMs } = this.#parts
    this.#lookAtOldest()
    const room = lanes.room()
    if (room.limit === 0) return pollMs
    const cursors = { cursorTenants: [...this.#cursors.keys()], cursors: [...this.#cursors.values()] }
    const skipped = this.#unclaimable.skipped()
    const { count, further } = await this.#claim({ ...room, ...cursors, skipped, claimMs: timeoutMs + claimSlackMs })
    this.#moveCursors(room, further)
    if (count > 0) return 0
    return this.#cursors.size > 0 ? Math.min(furtherMs, pollMs) : pollMs
  }

  /** Claims what is due, and begins to send it. */
  async #claim(claim: DeliveryClaim): Promise<ClaimedApart> {
    try {
      const answer = await this.#parts.store.run(claimDeliveries, claim)
      const rows = answer.filter((row) => row.id !== null)
      this.#begin(rows)
      const further = answer.flatMap((row) => (row.id === null ? Object.entries(row.further ?? {}) : []))
      return { count: rows.length, further }
    } catch (error) {
      if (isNobodys(error)) throw error
      const apart = await this.#unclaimable.claimApart(claim, (rows) => this.#begin(rows))
      if (apart.count === 0) throw error
      return apart
    }
  }

  #moveCursors({ tenants, tenantMosts }: ClaimRoom, further: [tenant: string, lane: string][]): void {
    this.#cursors = new Map([
      // a tenant without room was not searched, and continues from where it is
      ...[...this.#cursors].filter(([tenant]) => tenantMosts[tenants.indexOf(tenant)] === 0),
      ...further,
    ])
  }

  /** Sends what was claimed just now. */
  #begin(rows: ClaimedDelivery[]): void {
    const claimedMs = performance.now()
    for (const row of rows) {
      const carried = this.#carry(row, () => row.now_ms + performance.now() - claimedMs)
      this.#inFlight.add(carried)
      void carried.then(() => this.#inFlight.delete(carried))
    }
  }

  async #carry(row: ClaimedDelivery, clock: Clock): Promise<void> {
    const { lanes, observer } = this.#parts
    lanes.begin(row.tenant, row.lane)
    let ms: number | null = null
    try {
      const tried = await send(this.#parts, row, clock, this.#leaving.signal)
      ms = tried.ms
      await this.#outcomes.add({ row, tried })
    } catch (error) {
      // an outcome that was not written becomes due again when the claim ends
      observer.onError(error)
    } finally {
      lanes.end(row.tenant, row.lane, ms)
      this.wake()
    }
  }

  /** Runs alongside the claims, not before them: it walks every lane of every tenant. */
  #lookAtOldest(): void {
    if (this.#looking || performance.now() - this.#lookedMs < lookEveryMs) return
    const { store, observer } = this.#parts
    this.#lookedMs = performance.now()
    this.#looking = store
      .run(oldestDue, {})
      .then(([oldest]) => observer.oldest(oldest?.late_ms ?? 0), observer.onError)
      .finally(() => {
        this.#looking = undefined
      })
  }
}

async function write({ store, giveUpMs, observer }: SenderParts, ended: Ended[]): Promise<undefined[]> {
  const off: SwitchedOff[] = []
  const told = await runBatch(store, {
    items: ended,
    async run(runner, some) {
      const rows = await runner.run(writeTries, { tried: some.map(({ tried }) => tried), giveUpMs })
      off.push(...(rows[0]?.off ?? []))
      const states = new Map(rows.map(({ id, state }) => [id, state]))
      return some.map(({ row }) => states.get(row.id))
    },
  })
  for (const [index, one] of ended.entries()) tell(observer, one, told[index] as Told<string | undefined>)
  for (const endpoint of off) observer.switchedOff(endpoint)
  return ended.map(() => undefined)
}

function tell(observer: SenderObserver, { row, tried }: Ended, told: Told<string | undefined>): void {
  // an outcome that was not written becomes due again when the claim ends
  if (told.is !== 'done') observer.onError(told.error)
  else if (told.answer === undefined) observer.refused(row)
  else if (tried.outcome !== 'released') observer.ended(outcomeOf(told.answer), row, tried.error)
}

function outcomeOf(state: string): 'delivered' | 'retry' | 'dead' {
  return state === 'pending' ? 'retry' : (state as 'delivered' | 'dead')
}
