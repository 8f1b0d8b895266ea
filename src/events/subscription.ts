import type { Backoff } from '../job/define.ts'
import { isFileError, isHeldUp } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import type { Service } from '../service/service.ts'
import { isNobodys } from '../transitions/batch.ts'
import { type HeldCursor, nextLookMs } from './cursor.ts'
import { type DispatchParts, dispatch, type EventHandler } from './dispatch.ts'
import { type EventRow, eventOf } from './event.ts'
import { moveCursor, noteFailure, parkEvent } from './group.sql.ts'
import { type Horizon, makeHorizon } from './horizon.ts'
import { readEvents } from './log.sql.ts'
import { keepParked, type ParkedRow, unparkEvent } from './parked.sql.ts'
import { Reader } from './reader.ts'
import { isUnknown, parkedToReplay, replayedOf, stubOf, unreadable } from './unread.ts'
import type { Wakeups } from './wakeups.ts'

/** What a subscription needs. */
export interface SubscriptionParts {
  store: Store
  wakeups: Wakeups
  group: string
  handler: EventHandler
  timeoutMs: number
  /** Failures of an event before it is parked. */
  most: number
  backoff: Required<Backoff>
  batchSize: number
  pollMs: number
  leaseMs: number
  beatMs: number
  observer: SubscriptionObserver
}

/** What a subscription reports. */
export interface SubscriptionObserver {
  handled(count: number): void
  failed(seq: number, failures: number, error: string): void
  parked(seq: number, error: string): void
  /** A transaction has been open for so long that events have to wait for it. */
  heldBack(forMs: number): void
  onError(error: unknown): void
}

/** How many readers an event may kill before it is parked unread. */
const crashBudget = 5
/** From this many events per read on, the reader is busy and needs no wake-ups. */
const busyAt = 200
const flushMs = 500
const tellEveryMs = 10_000

/** Reads the log for a group and passes each event to the handler: first the handler, then the cursor. */
export function makeSubscription(parts: SubscriptionParts): Service {
  const horizon = makeHorizon(parts.store)
  return new Reader({
    store: parts.store,
    wakeups: parts.wakeups,
    group: parts.group,
    leaseMs: parts.leaseMs,
    beatMs: parts.beatMs,
    careful: parts.batchSize,
    turn: (cursor) => readOn(parts, horizon, cursor),
    onError: parts.observer.onError,
  })
}

type Turn = number | 'lost'

async function readOn(parts: SubscriptionParts, horizon: Horizon, cursor: HeldCursor): Promise<Turn> {
  const replayed = await replayDue(parts, cursor)
  if (replayed !== 'none') return replayed === 'lost' ? 'lost' : 0
  const { safe, top, restores } = await horizon.look()
  if (cursor.isRestored(restores)) return 'lost'
  if (safe <= cursor.seq) return rest(parts, cursor, top)
  cursor.heldBack = undefined
  const upTo = Math.min(safe, cursor.seq + cursor.window)
  const isCareful = cursor.carefulUntil > cursor.seq
  const limit = isCareful ? 1 : parts.batchSize
  const rows = await read(parts, cursor, { upTo, limit })
  if (!Array.isArray(rows)) return rows
  // an event that kills every reader is parked unread: when they are read one by one, it is the next one
  const [first] = rows
  if (first && isCareful && cursor.crashes >= crashBudget)
    return park(parts, cursor, first, crashBudget, readersDied(cursor))
  const handled = await dispatchAll(parts, cursor, rows)
  if (handled === 'lost') return 'lost'
  if (handled === 'left') return 0
  const seq = rows.length < limit ? upTo : (rows.at(-1)?.seq ?? upTo)
  // a group that wants few of many events need not write down each step past the others
  if (rows.length === 0 && performance.now() - cursor.movedMs < flushMs) {
    cursor.seq = seq
    return 0
  }
  return move(parts, cursor, seq, rows.length < busyAt && cursor.wantsWake)
}

/** The next events. If they can't be read, how to go on: with fewer of them, or without the one that is unreadable. */
async function read(
  parts: SubscriptionParts,
  cursor: HeldCursor,
  range: { upTo: number; limit: number },
): Promise<EventRow[] | Turn> {
  try {
    const rows = await parts.store.run(readEvents, { ...about(cursor), after: cursor.seq, ...range })
    cursor.readWorked()
    return rows
  } catch (error) {
    if (isNobodys(error) || (isFileError(error) && cursor.mayHeal())) throw error
    const isUnreadable = cursor.readFailed(range.upTo - cursor.seq, isHeldUp(error))
    if (isUnreadable) return parkUnread(parts, cursor, error)
    if (isHeldUp(error)) throw error
    return 0
  }
}

/** Parks the next event, which can't be read. */
async function parkUnread(parts: SubscriptionParts, cursor: HeldCursor, error: unknown): Promise<Turn> {
  const seq = cursor.seq + 1
  // if not even a read of nothing works, no event is to blame
  await parts.store.run(readEvents, { ...about(cursor), after: seq, upTo: seq, limit: 1 })
  const row = await stubOf(parts.store, about(cursor), seq)
  if (row) {
    const parked = await park(parts, cursor, row, 1, unreadable(error))
    return parked !== 'lost' && isUnknown(row) ? cursor.parkedUnknown() : parked
  }
  cursor.seq = seq
  return 0
}

function about({ fence, partitions }: HeldCursor) {
  return { group: fence.group, partition: fence.partition, partitions }
}

/** Nothing can be read. A reader asks for wake-ups first and then looks once more, or it would miss events written in between. */
async function rest(parts: SubscriptionParts, cursor: HeldCursor, top: number): Promise<Turn> {
  if (top > cursor.seq) return Math.min(parts.pollMs, waitForWriter(parts, cursor))
  cursor.heldBack = undefined
  if (cursor.wantsWake && cursor.movedSeq === cursor.seq) return parts.pollMs
  return move(parts, cursor, cursor.seq, true)
}

function waitForWriter({ observer }: SubscriptionParts, cursor: HeldCursor): number {
  const forMs = cursor.heldBackMs()
  const { heldBack } = cursor
  if (heldBack && performance.now() - heldBack.toldMs > tellEveryMs) {
    heldBack.toldMs = performance.now()
    observer.heldBack(forMs)
  }
  return nextLookMs(forMs)
}

async function move(parts: SubscriptionParts, cursor: HeldCursor, seq: number, wantsWake: boolean): Promise<Turn> {
  const [moved] = await parts.store.contend(moveCursor, { ...cursor.fence, from: cursor.movedSeq, seq, wantsWake })
  if (!moved) return 'lost'
  cursor.moved(seq, wantsWake)
  return 0
}

async function dispatchAll(
  parts: SubscriptionParts,
  cursor: HeldCursor,
  rows: EventRow[],
): Promise<'all' | 'left' | 'lost'> {
  const how = dispatching(parts, cursor)
  for (const [index, row] of rows.entries()) {
    if (cursor.leaving.aborted) return leaveAt(parts, cursor, rows[index - 1])
    const ended = await dispatch(how, eventOf(row), cursor)
    if (ended.kind === 'interrupted') return cursor.lost.aborted ? 'lost' : leaveAt(parts, cursor, rows[index - 1])
    const isDue = performance.now() - cursor.movedMs > flushMs
    if (ended.kind === 'poison') {
      if ((await park(parts, cursor, row, ended.failures, ended.error)) === 'lost') return 'lost'
    } else if (isDue && (await move(parts, cursor, row.seq, cursor.wantsWake)) === 'lost') return 'lost'
  }
  parts.observer.handled(rows.length)
  return 'all'
}

/** Writes down what was handled before it leaves, so that it is not handled again. */
async function leaveAt(parts: SubscriptionParts, cursor: HeldCursor, last: EventRow | undefined): Promise<'left'> {
  if (last && last.seq > cursor.seq && !cursor.lost.aborted) await move(parts, cursor, last.seq, false)
  return 'left'
}

function dispatching(parts: SubscriptionParts, cursor: HeldCursor): DispatchParts {
  return {
    ...parts,
    async onFailure(event, failures, error) {
      parts.observer.failed(event.seq, failures, error)
      await parts.store.contend(noteFailure, { ...cursor.fence, failingSeq: event.seq, failures, error })
    },
  }
}

async function park(
  parts: SubscriptionParts,
  cursor: HeldCursor,
  row: EventRow,
  failures: number,
  error: string,
): Promise<Turn> {
  const [parked] = await parts.store.contend(parkEvent, {
    ...cursor.fence,
    from: cursor.movedSeq,
    seq: row.seq,
    event: JSON.stringify(row),
    failures,
    error,
  })
  if (!parked) return 'lost'
  cursor.moved(row.seq)
  parts.observer.parked(row.seq, error)
  return 0
}

/** Handles parked events that should be replayed. They come before new events, and out of the order of their jobs. */
async function replayDue(parts: SubscriptionParts, cursor: HeldCursor): Promise<'none' | 'some' | 'lost'> {
  const due = await parkedToReplay(parts.store, about(cursor), 10)
  if (!Array.isArray(due)) return putBack(parts, cursor, { ...due, failures: 1 })
  const [first] = due
  if (first && cursor.crashes >= crashBudget) return putBackKiller(parts, cursor, first.seq)
  for (const row of due) {
    if (cursor.leaving.aborted) return 'some'
    const replayed = await replayOne(parts, cursor, row)
    if (replayed === 'interrupted') return cursor.lost.aborted ? 'lost' : 'some'
    if (replayed === 'lost') return 'lost'
  }
  return due.length === 0 ? 'none' : 'some'
}

async function replayOne(
  parts: SubscriptionParts,
  cursor: HeldCursor,
  row: ParkedRow,
): Promise<'some' | 'lost' | 'interrupted'> {
  const event = await replayedOf(parts.store, about(cursor), row)
  if (typeof event === 'string') return putBack(parts, cursor, { seq: row.seq, failures: 1, error: event })
  const ended = await dispatch(dispatching(parts, cursor), event, cursor)
  if (ended.kind === 'interrupted') return 'interrupted'
  if (ended.kind === 'poison') return putBack(parts, cursor, { ...ended, seq: row.seq })
  const [handled] = await parts.store.contend(unparkEvent, { ...cursor.fence, seq: row.seq })
  return handled ? 'some' : 'lost'
}

/** Keeps a parked event that can't be handled yet. */
async function putBack(
  parts: SubscriptionParts,
  cursor: HeldCursor,
  { seq, failures, error }: { seq: number; failures: number; error: string },
): Promise<'some' | 'lost'> {
  const [kept] = await parts.store.contend(keepParked, { ...cursor.fence, seq, failures, error })
  if (!kept) return 'lost'
  parts.observer.parked(seq, error)
  return 'some'
}

/** The replayed event kills every reader before any of them gets to new events, so it is not replayed any more. */
async function putBackKiller(parts: SubscriptionParts, cursor: HeldCursor, seq: number): Promise<'some' | 'lost'> {
  const kept = await putBack(parts, cursor, { seq, failures: crashBudget, error: readersDied(cursor) })
  if (kept === 'lost') return 'lost'
  // lowers the crash count in the database, or the next reader would blame a new event
  return (await move(parts, cursor, cursor.seq, cursor.wantsWake)) === 'lost' ? 'lost' : 'some'
}

function readersDied({ crashes }: HeldCursor): string {
  return `Its readers died: ${crashes} in a row.`
}
