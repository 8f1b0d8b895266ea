import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Store } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { HeldCursor } from './cursor.ts'
import { type ClaimedCursor, claimCursors, closeReader, openReader, releaseCursor, renewReader } from './group.sql.ts'
import type { Wakeups } from './wakeups.ts'

/** What a reader needs. */
export interface ReaderParts {
  store: Store
  wakeups: Wakeups
  group: string
  leaseMs: number
  beatMs: number
  /** How many events may be in doubt after a crash: the size of a batch. */
  careful: number
  /** Reads on from a cursor once. Returns how long to wait before the next time, or that another reader has the cursor. */
  turn: (cursor: HeldCursor) => Promise<number | 'lost'>
  onError: (error: unknown) => void
}

interface Lane {
  cursor: HeldCursor
  loop: Loop
}

interface Share {
  readers: number
  partitions: number
}

/** How much of its lease a reader gives up to be on the safe side. */
const marginShare = 0.2

/**
 * A reader of a group: one process that holds its share of the group's cursors and reads from each.
 *
 * The invariant: at most one reader moves a cursor. A reader has one lease, which covers all its cursors. Claiming a cursor raises its term,
 * and every write about a cursor carries the term. A reader that could not confirm its lease drops all cursors, on its own clock, before the
 * database would give them to others. The reverse may happen: an event that was handled before its cursor moved is handled again by the next
 * reader.
 */
export class Reader implements Service {
  readonly #parts: ReaderParts
  readonly #lanes = new Map<number, Lane>()
  readonly #beating: Loop
  #readerId: string | undefined
  #expiry: NodeJS.Timeout | undefined
  #isForgotten = false
  #isStopping = false
  #unhear: (() => Promise<void>) | undefined
  #dropped: Promise<unknown> = Promise.resolve()

  constructor(parts: ReaderParts) {
    this.#parts = parts
    this.#beating = loop({ turn: () => this.#beat(), onError: parts.onError, errorPauseMs: parts.beatMs })
  }

  async start(): Promise<void> {
    if (this.#unhear) return
    this.#isStopping = false
    this.#unhear = this.#parts.wakeups.hear(() => {
      for (const lane of this.#lanes.values()) lane.loop.wake()
    })
    await this.#beating.start()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    // the lease is renewed until the handlers have ended: otherwise another reader would begin with the same events
    await this.#leaveAll()
    await this.#beating.stop()
    const readerId = this.#readerId
    clearTimeout(this.#expiry)
    // lanes that the last beat added
    await this.#leaveAll()
    this.#lanes.clear()
    this.#readerId = undefined
    const { store, group, leaseMs: patienceMs, onError } = this.#parts
    if (readerId !== undefined) await store.contend(closeReader, { readerId, group }, { patienceMs }).catch(onError)
    await this.#unhear?.()
    this.#unhear = undefined
  }

  async #beat(): Promise<number> {
    const { store, group, leaseMs, beatMs } = this.#parts
    const sinceMs = performance.now()
    if (this.#readerId === undefined && (this.#isStopping || !(await this.#open()))) return leaseMs
    const readerId = this.#readerId as string
    const [share] = await store.contend(renewReader, { readerId, group, leaseMs }, { patienceMs: leaseMs })
    if (!share || readerId !== this.#readerId) {
      this.#dropAll()
      return share ? 0 : beatMs
    }
    this.#confirm(sinceMs)
    await this.#reconcile(readerId, share.held)
    await this.#balance(readerId, share)
    return beatMs
  }

  /** Registers a new reader, unless the group was removed. */
  async #open(): Promise<boolean> {
    await this.#dropped
    const { store, group, leaseMs, onError } = this.#parts
    const readerId = randomUUID()
    const opened = await store.contend(openReader, { readerId, group, host: hostname(), pid: process.pid, leaseMs })
    if (opened.length > 0) this.#readerId = readerId
    else if (!this.#isForgotten) onError(new Error(`The group ${group} was forgotten, so it can no longer be read.`))
    this.#isForgotten = opened.length === 0
    return !this.#isForgotten
  }

  /** The lease is valid, counted from when its renewal was sent. */
  #confirm(sinceMs: number): void {
    clearTimeout(this.#expiry)
    const leftMs = this.#parts.leaseMs * (1 - marginShare) - (performance.now() - sinceMs)
    this.#expiry = setTimeout(() => this.#dropAll(), Math.max(0, leftMs))
  }

  /** Drops all cursors at once, whether or not the database can be reached. */
  #dropAll(): void {
    clearTimeout(this.#expiry)
    this.#readerId = undefined
    const lanes = [...this.#lanes.values()]
    this.#lanes.clear()
    for (const { cursor } of lanes) cursor.lose()
    this.#dropped = Promise.all([this.#dropped, ...lanes.map(leave)])
  }

  /** Compares the cursors that we hold with those that the database says we hold. */
  async #reconcile(readerId: string, held: { partition: number; term: number }[]): Promise<void> {
    // the group was sent to another position: such a cursor is no longer ours, even if there is nothing to write
    for (const lane of this.#lanes.values()) {
      const { partition, term } = lane.cursor.fence
      if (held.some((one) => one.partition === partition && one.term === term)) continue
      lane.cursor.lose()
      await leave(lane)
    }
    // the answer to a claim was lost, or a release failed: no other reader could have the cursor while we live
    const { store, group } = this.#parts
    for (const { partition, term } of held)
      if (this.#lanes.get(partition)?.cursor.fence.term !== term)
        await store.contend(releaseCursor, { group, partition, readerId, term })
  }

  /** Claims cursors up to our share, and gives back those beyond it. */
  async #balance(readerId: string, { readers, partitions }: Share): Promise<void> {
    const share = Math.ceil(partitions / Math.max(1, readers))
    for (const [partition, { cursor }] of this.#lanes) if (cursor.lost.aborted) this.#lanes.delete(partition)
    for (const lane of [...this.#lanes.values()].slice(share)) this.#giveBack(lane)
    const limit = share - this.#lanes.size
    if (this.#isStopping || limit <= 0) return
    const { store, group, careful } = this.#parts
    const claimed = await store.run(claimCursors, { group, readerId, limit, careful })
    // the answer may come so late that all cursors were dropped in the meantime: others may be reading there by now
    if (readerId !== this.#readerId) return
    for (const row of claimed) await this.#hold(readerId, row, partitions)
  }

  async #hold(readerId: string, row: ClaimedCursor, partitions: number): Promise<void> {
    const { group, onError } = this.#parts
    const fence = { group, partition: row.partition, readerId, term: row.term }
    const cursor = new HeldCursor(fence, row, partitions)
    const lane: Lane = { cursor, loop: loop({ turn: () => this.#turn(lane), onError }) }
    this.#lanes.set(row.partition, lane)
    await lane.loop.start()
  }

  async #turn(lane: Lane): Promise<number> {
    const { cursor } = lane
    const waitMs = cursor.leaving.aborted ? 'lost' : await this.#parts.turn(cursor)
    if (waitMs !== 'lost') return waitMs
    cursor.lose()
    // at once, so that the next beat may claim the cursor again
    this.#forget(lane)
    // not awaited: a loop that stops waits for its current turn, which is this one
    void lane.loop.stop()
    this.#beating.wake()
    return 0
  }

  /** Not awaited by the beat: a handler may take longer than the lease, which has to be renewed in the meantime. */
  #giveBack(lane: Lane): void {
    const { store, onError } = this.#parts
    if (lane.cursor.leaving.aborted) return
    void leave(lane)
      .then(() => store.contend(releaseCursor, lane.cursor.fence))
      .finally(() => this.#forget(lane))
      .catch(onError)
  }

  #forget(lane: Lane): void {
    const { partition } = lane.cursor.fence
    if (this.#lanes.get(partition) === lane) this.#lanes.delete(partition)
  }

  async #leaveAll(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map(leave))
  }
}

function leave(lane: Lane): Promise<void> {
  lane.cursor.leave()
  return lane.loop.stop()
}
