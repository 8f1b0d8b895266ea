import type { HeldFence, JobId } from '../job/id.ts'
import { openStore, type Store } from '../postgres/store.ts'
import { releaseJobs } from '../settle/settle.sql.ts'
import { runBatch } from '../transitions/batch.ts'
import { fenceOfHeld, unheldAttempts } from './claim.sql.ts'
import { distance, later, Seizer } from './handover.ts'
import type { Prefetched } from './prefetch-buffer.ts'
import { readVitals } from './vitals.ts'

/** A claim that the main thread has under way, with the ids of the leases that it knew when it sent the claim. */
export interface ClaimUnderWay {
  ticket: number
  sessionId: number
  held: string
}

/** What it takes to release jobs from the heartbeat thread. */
export interface GiveBackOptions {
  url: string
  isPooled: boolean
  holdMs: number
  connectMs: number
  vitals: SharedArrayBuffer
  handover: SharedArrayBuffer
  onGivenBack: (count: number, blockedMs: number) => void
  onError: (error: unknown) => void
}

interface Owed {
  sessionId: number
  fences: HeldFence[]
}

/**
 * Releases jobs that the main thread claimed but can't start, because a handler blocks its event loop. It uses its own
 * connection, so that a locked row can't delay the heartbeat.
 */
export class GiveBack {
  readonly #options: GiveBackOptions
  readonly #seizer: Seizer
  #batches: (Prefetched & { heardAtMs: number })[] = []
  #claim: (ClaimUnderWay & { isSeized: boolean }) | undefined
  #owed: Owed[] = []
  #isBusy = false
  #claimDueAtMs = 0
  #owedDueAtMs = 0

  constructor(options: GiveBackOptions) {
    this.#options = options
    this.#seizer = new Seizer(options.handover)
  }

  prefetched(jobs: Prefetched): void {
    this.#forgetTaken()
    this.#batches.push({ ...jobs, heardAtMs: performance.now() })
  }

  claiming(claim: ClaimUnderWay): void {
    this.#claim = { ...claim, isSeized: false }
  }

  /** Checks whether the main thread is blocked, and releases what has waited too long because of it. */
  async look(): Promise<void> {
    const { blockedMs } = readVitals(this.#options.vitals)
    if (this.#isBusy) return
    if (blockedMs > 0) this.#seize(blockedMs)
    else if (this.#claim?.isSeized) this.#putBackClaim()
    if (!this.#areOwedDue() && !this.#isClaimDue()) return
    this.#isBusy = true
    await this.#release(blockedMs).catch((error) => this.#failed(error))
    this.#isBusy = false
  }

  /** Retries later if the database doesn't answer. Failing that, the main thread or the reaper finds the jobs. */
  #failed(error: unknown): void {
    const { holdMs, onError } = this.#options
    this.#owedDueAtMs = performance.now() + holdMs
    this.#claimDueAtMs = this.#owedDueAtMs
    onError(error)
  }

  #areOwedDue(): boolean {
    return this.#owed.length > 0 && performance.now() >= this.#owedDueAtMs
  }

  #isClaimDue(): boolean {
    return this.#claim?.isSeized === true && performance.now() >= this.#claimDueAtMs
  }

  #putBackClaim(): void {
    this.#claim = undefined
    this.#seizer.putBackClaim()
  }

  #seize(blockedMs: number): void {
    const { holdMs } = this.#options
    this.#forgetTaken()
    const [oldest] = this.#batches
    if (oldest && performance.now() - oldest.heardAtMs >= holdMs) this.#seizePrefetched()
    if (this.#claim && !this.#claim.isSeized && blockedMs >= holdMs) {
      if (this.#seizer.seizeClaim(this.#claim.ticket)) this.#claim.isSeized = true
      else this.#claim = undefined
    }
  }

  #seizePrefetched(): void {
    const from = this.#seizer.cursor()
    const last = this.#batches.at(-1)
    if (from === null || !last || !this.#seizer.seize(from, endOf(last))) return
    for (const batch of this.#batches) this.#owed.push({ sessionId: batch.sessionId, fences: fencesOf(batch, from) })
    this.#batches = []
  }

  #forgetTaken(): void {
    const cursor = this.#seizer.cursor()
    if (cursor === null) return
    this.#batches = this.#batches.filter((batch) => isAhead(cursor, endOf(batch)))
  }

  async #release(blockedMs: number): Promise<void> {
    const { url, isPooled, connectMs } = this.#options
    const store = openStore({ url, isPooled, poolSize: 1, statementTimeoutMs: connectMs })
    try {
      const count = (await this.#releaseOwed(store)) + (await this.#releaseClaimed(store))
      if (count > 0) this.#options.onGivenBack(count, blockedMs)
    } finally {
      await store.close()
    }
  }

  async #releaseOwed(store: Store): Promise<number> {
    let count = 0
    for (const owed of [...this.#owed]) {
      const { released, held } = await release(store, owed.fences)
      this.#owed.splice(this.#owed.indexOf(owed), 1)
      count += released
      if (held.length > 0) this.#owe({ ...owed, fences: held })
    }
    return count
  }

  /** The answer of a claim lies unread in the main thread, so its jobs are held in our name by nobody. */
  async #releaseClaimed(store: Store): Promise<number> {
    if (!this.#claim?.isSeized) return 0
    const { sessionId, held } = this.#claim
    const leaseIds = held === '' ? [] : held.split(',').map(Number)
    const fences = (await store.run(unheldAttempts, { sessionId, leaseIds })).map(fenceOfHeld)
    // Whole leases, because a claim makes new ones. By job, we would also find what we already owe, and mistake it for
    // the jobs of the claim.
    this.#claimDueAtMs = performance.now() + this.#options.holdMs
    // the server may not have carried out the claim yet
    if (fences.length === 0) return 0
    const { released, held: locked } = await release(store, fences)
    this.#owe({ sessionId, fences: locked })
    this.#putBackClaim()
    return released
  }

  #owe(owed: Owed): void {
    if (owed.fences.length === 0) return
    this.#owed.push(owed)
    this.#owedDueAtMs = performance.now() + this.#options.holdMs
  }
}

/** Releases attempts. Those on locked rows are left for later; those that aren't ours have already been moved. */
async function release(store: Store, fences: HeldFence[]): Promise<{ released: number; held: HeldFence[] }> {
  let released = 0
  const told = await runBatch(store, {
    items: fences,
    needOf: ({ id, leaseId }) => ({ id, leaseId, barrier: 'none' }),
    async run(runner, some) {
      const [moved] = await runner.run(releaseJobs, { fences: some })
      released += moved?.count ?? 0
      return some
    },
  })
  return { released, held: fences.filter((_, index) => told[index]?.is === 'held') }
}

/** Whether a number is still to come. Numbers wrap around, but far fewer than half of them are in use at a time. */
function isAhead(cursor: number, number: number): boolean {
  const ahead = distance(cursor, number)
  return ahead > 0 && ahead < distance(0, -1) / 2
}

function countOf({ ids }: Prefetched): number {
  // an id has 36 characters and a comma
  return (ids.length + 1) / 37
}

function endOf(batch: Prefetched): number {
  return later(batch.from, countOf(batch))
}

/** The jobs of a batch from that number on; the main thread has taken those before it. */
function fencesOf(batch: Prefetched, from: number): HeldFence[] {
  const ids = batch.ids.split(',')
  const attempts = batch.attempts === '' ? null : batch.attempts.split(',')
  const [leases, sizes, slots] = [batch.leases, batch.sizes, batch.slots].map((list) =>
    list.split(',').map(Number),
  ) as [number[], number[], number[]]
  const taken = Math.max(0, ids.length - distance(from, endOf(batch)))
  return ids.slice(taken).map((id, index) => {
    const at = taken + index
    return {
      id: id as JobId,
      attempt: Number(attempts?.[at] ?? 1),
      sessionId: batch.sessionId,
      leaseId: leases[at] as number,
      slot: slots[at] as number,
      leaseSize: sizes[at] as number,
    }
  })
}
