/**
 * Deliveries that no claim can take, because something that belongs to them makes the statement fail: a body that can't be read, a trigger of
 * another program. A claim covers all tenants in one statement, so one such delivery would keep every webhook from being sent. When a claim
 * fails, what is due is claimed in parts, and the parts that fail are split again. A delivery that fails alone is postponed like one whose
 * receiver failed, and becomes a dead letter in the same time. If even that is refused, this sender leaves it alone for a while.
 *
 * There may be thousands of them. A lane gets only a few of the rows that a claim takes, so a search finds only some of them, and is short. What
 * was postponed comes after what was never tried.
 */
import { messageOf } from '../errors/errors.ts'
import { isHeldUp } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { isNobodys, runBatch } from '../transitions/batch.ts'
import type { ClaimedDelivery, DeliveryClaim } from './claim.sql.ts'
import { claimOnly, type DueDelivery, dueDeliveries } from './claim-apart.sql.ts'
import { type Tried, writeTries } from './delivery.sql.ts'
import { SkippedDeliveries } from './skipped.ts'

/** What it takes to claim deliveries apart. */
export interface UnclaimableParts {
  store: Store
  giveUpMs: number
  backoffBaseMs: number
  onError: (error: unknown) => void
}

/** What a search did: how many deliveries it claimed or put off, and the tenants that have further lanes. */
export interface ClaimedApart {
  count: number
  further: [tenant: string, lane: string][]
}

/** Into how many parts deliveries that can't be claimed together are split. */
const ways = 8
const partMs = 1_000
/** After so long, what is left waits for the next search. */
const longestMs = 1_000
/** After so many that can't be postponed, the others are skipped without a try. */
const mostRefused = 20
const delays = { leastMs: 1_000, mostMs: 15 * 60_000 }

interface BadDelivery extends DueDelivery {
  error: unknown
}

/** Claims deliveries apart from those that can't be claimed, and puts those off. */
export class Unclaimable {
  readonly #parts: UnclaimableParts
  readonly #skipped = new SkippedDeliveries()

  constructor(parts: UnclaimableParts) {
    this.#parts = parts
  }

  /** The deliveries to leave alone for now. */
  skipped(): string[] {
    return this.#skipped.at(performance.now())
  }

  /** Claims what is due in parts. `begin` is called for each part at once: a claim does not last for as long as a search may. */
  async claimApart(claim: DeliveryClaim, begin: (rows: ClaimedDelivery[]) => void): Promise<ClaimedApart> {
    const answer = await this.#parts.store.run(dueDeliveries, claim)
    const due = answer.filter((row) => row.id !== null)
    const { claimed, bad: found } = await this.#search(due, claim.claimMs, begin)
    // if none can be claimed in time, the server is slow, and no delivery is to blame
    const bad = claimed > 0 ? found : found.filter(({ error }) => !isHeldUp(error))
    if (bad.length > 0) await this.#putOff(bad)
    const further = answer.flatMap((row) => (row.id === null ? Object.entries(row.further ?? {}) : []))
    return { count: claimed + bad.length, further }
  }

  /** Larger parts go first: most deliveries can be claimed with them. */
  async #search(
    due: DueDelivery[],
    claimMs: number,
    begin: (rows: ClaimedDelivery[]) => void,
  ): Promise<{ claimed: number; bad: BadDelivery[] }> {
    const untilMs = performance.now() + longestMs
    const bad: BadDelivery[] = []
    let claimed = 0
    const parts = due.length > 0 ? [due] : []
    for (let part = parts.shift(); part; part = parts.shift()) {
      try {
        const rows = await this.#parts.store.run(claimOnly, { ids: part.map(({ id }) => id), claimMs }, partMs)
        claimed += rows.length
        begin(rows)
      } catch (error) {
        if (isNobodys(error)) throw error
        if (part.length > 1) parts.push(...split(part))
        else bad.push(...part.map((one) => ({ ...one, error })))
      }
      // one that goes on gets at least somewhere, however slow it is
      if (claimed + bad.length > 0 && performance.now() >= untilMs) break
    }
    return { claimed, bad }
  }

  async #putOff(bad: BadDelivery[]): Promise<void> {
    const { store, giveUpMs } = this.#parts
    // the write would wait for the same lock as the claim
    const held = bad.filter(({ error }) => isHeldUp(error))
    const items = bad.filter(({ error }) => !isHeldUp(error))
    const told = await runBatch(store, {
      items,
      run: async (runner, some) => {
        await runner.run(writeTries, { tried: some.map((one) => this.#postponed(one)), giveUpMs })
        return some
      },
      mostRefused,
    })
    const skipped = [...held, ...items.filter((_, index) => told[index]?.is !== 'done')]
    this.#skipped.add(
      skipped.map(({ id }) => id),
      performance.now(),
    )
    this.#report(bad)
  }

  /** Each delay is about as long as all before it together. */
  #postponed({ id, tries, failed_ms, error }: BadDelivery): Tried {
    const delayMs = Math.min(delays.mostMs, Math.max(this.#parts.backoffBaseMs, failed_ms ?? 0))
    const { leastMs } = delays
    const why = `It can't be claimed: ${messageOf(error)}`
    return { id, tries, outcome: 'unclaimable', status: null, error: why, excerpt: null, ms: null, delayMs, leastMs }
  }

  #report([first, ...others]: BadDelivery[]): void {
    const which = others.length === 0 ? `Delivery ${first?.id}` : `Delivery ${first?.id} and ${others.length} more`
    this.#parts.onError(
      new Error(`${which} can't be claimed, and will be tried again later: ${messageOf(first?.error)}`),
    )
  }
}

function split(part: DueDelivery[]): DueDelivery[][] {
  const size = Math.ceil(part.length / ways)
  return Array.from({ length: Math.ceil(part.length / size) }, (_, n) => part.slice(n * size, (n + 1) * size))
}
