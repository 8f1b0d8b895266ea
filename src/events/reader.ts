import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type Loop, loop, type Service } from '../service/service.ts'
import type { Store } from '../store/store.ts'
import {
  type CursorFence,
  carefulAfter,
  claimCursors,
  closeReader,
  openReader,
  releaseCursor,
  renewReader,
} from './group.sql.ts'
import type { Wakeups } from './wakeups.ts'

/**
 * A reader of a group: one process that takes its share of the group's cursors and lets each be read.
 *
 * The invariant: at most one reader moves a cursor. A reader has one lease, which covers all cursors that it holds; claiming a
 * cursor raises its term, and a write about a cursor carries the term. A reader whose lease could not be confirmed lets go of all
 * cursors on its own clock before the database would give them to others. What may fail is only the other side: an event that was handled
 * but whose cursor had not moved yet is handled again by the next reader.
 */
export interface ReaderParts {
  store: Store
  wakeups: Wakeups
  group: string
  leaseMs: number
  beatMs: number
  /** How many events may be in doubt after a crash: the size of a batch. */
  careful: number
  /** Reads on from a cursor once, and says how long to wait before the next time, or that the cursor is another's by now. */
  turn: (held: HeldCursor) => Promise<number | 'lost'>
  onTrouble: (error: unknown) => void
}

/** A cursor that this process holds. */
export interface HeldCursor {
  readonly fence: CursorFence
  readonly partitions: number
  /** Everything up to here is handled. */
  seq: number
  /** What the database knows of it, and since when. */
  movedSeq: number
  movedMs: number
  /** How many readers died here without moving it. */
  crashes: number
  /** Up to here events are read one by one, because one of them may kill its reader. */
  readonly carefulUntil: number
  wantsWake: boolean
  /** Fires when no further event should be begun. */
  readonly leaving: AbortSignal
  /** Fires when the cursor is ours no more, or soon will not be: whatever is under way should end. */
  readonly lost: AbortSignal
}

interface Lane {
  held: HeldCursor
  loop: Loop
  leaving: AbortController
  lost: AbortController
}

/** How much of its lease a reader gives away to be sure. */
const marginShare = 0.2

/** Makes a reader. `start` resolves when it has looked for cursors once. */
export function makeReader(parts: ReaderParts): Service {
  const { store, group, leaseMs, beatMs } = parts
  const lanes = new Map<number, Lane>()
  let readerId: string | undefined
  let doubt: NodeJS.Timeout | undefined
  let isForgotten = false
  let isStopping = false
  let unhear: (() => Promise<void>) | undefined
  let dropped: Promise<unknown> = Promise.resolve()

  /** All cursors are let go at once, whether or not the database can be told. */
  function dropAll(): void {
    clearTimeout(doubt)
    readerId = undefined
    const all = [...lanes.values()]
    lanes.clear()
    for (const lane of all) lane.lost.abort()
    dropped = Promise.all([dropped, ...all.map(leave)])
  }

  function leave(lane: Lane): Promise<void> {
    lane.leaving.abort()
    return lane.loop.stop()
  }

  function confirmed(sinceMs: number): void {
    clearTimeout(doubt)
    doubt = setTimeout(dropAll, Math.max(0, leaseMs * (1 - marginShare) - (performance.now() - sinceMs)))
  }

  /** Takes up a reader, unless the group was forgotten. */
  async function openUp(): Promise<boolean> {
    await dropped
    const fresh = randomUUID()
    const opened = await store.run(openReader, { readerId: fresh, group, host: hostname(), pid: process.pid, leaseMs })
    if (opened.length > 0) readerId = fresh
    else if (!isForgotten) parts.onTrouble(new Error(`The group ${group} was forgotten; nobody reads for it any more.`))
    isForgotten = opened.length === 0
    return !isForgotten
  }

  async function beat(): Promise<number> {
    const sinceMs = performance.now()
    if (readerId === undefined && (isStopping || !(await openUp()))) return leaseMs
    const id = readerId as string
    const [share] = await store.run(renewReader, { readerId: id, group, leaseMs })
    if (!share || id !== readerId) {
      dropAll()
      return share ? 0 : beatMs
    }
    confirmed(sinceMs)
    await compare(id, share.held)
    await balance(id, Math.ceil(share.partitions / Math.max(1, share.readers)), share.partitions)
    return beatMs
  }

  /** Brings what we hold and what the database says that we hold in line. */
  async function compare(readerId: string, held: { partition: number; term: number }[]): Promise<void> {
    // somebody sent the group to another place: what we hold of it is no longer ours, even if we have nothing to write
    for (const lane of lanes.values()) {
      const { partition, term } = lane.held.fence
      if (held.some((one) => one.partition === partition && one.term === term)) continue
      lane.lost.abort()
      await leave(lane)
    }
    // the answer to a claim was lost, or a release never came through: as long as we live, nobody else could have it
    for (const { partition, term } of held)
      if (lanes.get(partition)?.held.fence.term !== term)
        await store.run(releaseCursor, { group, partition, readerId, term })
  }

  /** Not awaited by the beat: a handler may take longer than the lease, and that must be renewed meanwhile. */
  function giveBack(lane: Lane): void {
    if (lane.leaving.signal.aborted) return
    const forget = () => {
      if (lanes.get(lane.held.fence.partition) === lane) lanes.delete(lane.held.fence.partition)
    }
    void leave(lane)
      .then(() => store.run(releaseCursor, lane.held.fence))
      .then(forget, (error) => {
        forget()
        parts.onTrouble(error)
      })
  }

  /** Takes what is missing to this reader's share, and gives back what is above it. */
  async function balance(id: string, share: number, partitions: number): Promise<void> {
    for (const [partition, lane] of lanes) if (lane.lost.signal.aborted) lanes.delete(partition)
    for (const lane of [...lanes.values()].slice(share)) giveBack(lane)
    if (isStopping) return
    if (lanes.size >= share) return
    const limit = share - lanes.size
    const claimed = await store.run(claimCursors, { group, readerId: id, limit, careful: parts.careful })
    // the answer may come so late that all was let go meanwhile: then others may read there
    if (id !== readerId) return
    for (const row of claimed) {
      const [leaving, lost] = [new AbortController(), new AbortController()]
      const held: HeldCursor = {
        fence: { group, partition: row.partition, readerId: id, term: row.term },
        partitions,
        seq: row.seq,
        movedSeq: row.seq,
        movedMs: performance.now(),
        crashes: row.crashes,
        carefulUntil: row.crashes >= carefulAfter ? row.careful_until : 0,
        wantsWake: false,
        leaving: leaving.signal,
        lost: lost.signal,
      }
      const lane: Lane = { held, leaving, lost, loop: loop({ turn: () => turn(lane), onError: parts.onTrouble }) }
      lanes.set(row.partition, lane)
      await lane.loop.start()
    }
  }

  async function turn(lane: Lane): Promise<number> {
    const waitMs = lane.leaving.signal.aborted ? 'lost' : await parts.turn(lane.held)
    if (waitMs !== 'lost') return waitMs
    lane.lost.abort()
    lane.leaving.abort()
    // not awaited: a loop that stops waits for this very turn
    void lane.loop.stop()
    beating.wake()
    return 0
  }

  const beating = loop({ turn: beat, onError: parts.onTrouble, errorPauseMs: beatMs })
  return {
    async start() {
      if (unhear) return
      isStopping = false
      unhear = parts.wakeups.hear(() => {
        for (const lane of lanes.values()) lane.loop.wake()
      })
      await beating.start()
    },
    async stop() {
      isStopping = true
      // the lease is renewed until the handlers have ended: others would begin with the same events beside them
      await Promise.all([...lanes.values()].map(leave))
      await beating.stop()
      const id = readerId
      clearTimeout(doubt)
      // claimed by the last beat
      await Promise.all([...lanes.values()].map(leave))
      lanes.clear()
      readerId = undefined
      if (id !== undefined) await store.run(closeReader, { readerId: id, group }).catch(parts.onTrouble)
      await unhear?.()
      unhear = undefined
    },
  }
}
