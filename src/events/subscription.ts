import type { Backoff } from '../job/define.ts'
import type { Service } from '../service/service.ts'
import type { Store } from '../store/store.ts'
import { type DispatchParts, dispatch, type EventHandler } from './dispatch.ts'
import { type EventRow, eventOf } from './event.ts'
import { carefulAfter, moveCursor, noteFailure, parkEvent } from './group.sql.ts'
import { readEvents } from './log.sql.ts'
import { dueParked, keepParked, type ParkedRow, unparkEvent } from './parked.sql.ts'
import { type HeldCursor, makeReader } from './reader.ts'
import { makeTide, type Tide } from './tide.ts'
import type { Wakeups } from './wakeups.ts'

/** What a subscription is made of. */
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
  news: SubscriptionNews
}

/** What a subscription tells of. */
export interface SubscriptionNews {
  handled(count: number): void
  failed(seq: number, failures: number, error: string): void
  parked(seq: number, error: string): void
  /** Somebody has been writing for so long that events which are there must wait. */
  heldBack(forMs: number): void
  trouble(error: unknown): void
}

/** How many readers an event may kill before it is parked unread. */
const crashBudget = 5
/** How far one read may look: a group that wants few types must not walk a million rows in one statement. */
const windowSize = 20_000
/** From this many events in a read on, the reader is busy and needs nobody to wake it. */
const busyAt = 200
const flushMs = 500

/** Reads the log for a group and hands each event to the handler: dispatch first, then the cursor. */
export function makeSubscription(parts: SubscriptionParts): Service {
  const tide = makeTide(parts.store)
  return makeReader({
    store: parts.store,
    wakeups: parts.wakeups,
    group: parts.group,
    leaseMs: parts.leaseMs,
    beatMs: parts.beatMs,
    careful: parts.batchSize,
    turn: (held) => readOn(parts, tide, held),
    onTrouble: parts.news.trouble,
  })
}

type Turn = number | 'lost'

async function readOn(parts: SubscriptionParts, tide: Tide, held: HeldCursor): Promise<Turn> {
  const replayed = await replayDue(parts, held)
  if (replayed !== 'none') return replayed === 'lost' ? 'lost' : 0
  const { safe, top } = await tide.look()
  if (safe <= held.seq) return restOf(parts, held, top)
  waits.delete(held)
  const upTo = Math.min(safe, held.seq + windowSize)
  const isCareful = held.carefulUntil > held.seq
  const limit = isCareful ? 1 : parts.batchSize
  const rows = await parts.store.run(readEvents, { ...about(held), after: held.seq, upTo, limit })
  // what kills every reader is parked unread: in careful steps, the next event is the one
  const [first] = rows
  if (first && isCareful && held.crashes >= crashBudget) return park(parts, held, first, crashBudget, readersDied(held))
  const handled = await dispatchAll(parts, held, rows)
  if (handled === 'lost') return 'lost'
  if (handled === 'left') return 0
  const seq = rows.length < limit ? upTo : (rows.at(-1)?.seq ?? upTo)
  // a group that wants few of many events need not write down each step past the others
  if (rows.length === 0 && performance.now() - held.movedMs < flushMs) {
    held.seq = seq
    return 0
  }
  return move(parts, held, seq, rows.length < busyAt && held.wantsWake)
}

function about({ fence, partitions }: HeldCursor) {
  return { group: fence.group, partition: fence.partition, partitions }
}

/** Nothing can be read. Whoever wants to be woken must say so first and then look once more, or news in between would be missed. */
async function restOf(parts: SubscriptionParts, held: HeldCursor, top: number): Promise<Turn> {
  if (top > held.seq) return Math.min(parts.pollMs, waitFor(parts, held))
  waits.delete(held)
  if (held.wantsWake && held.movedSeq === held.seq) return parts.pollMs
  return move(parts, held, held.seq, true)
}

/** Since when events have been there that must wait for somebody who still writes. */
const waits = new WeakMap<HeldCursor, { sinceMs: number; toldMs: number }>()
const tellEveryMs = 10_000

/** Somebody still writes: usually for a few milliseconds, but it may be hours. */
function waitFor(parts: SubscriptionParts, held: HeldCursor): number {
  const now = performance.now()
  const wait = waits.get(held) ?? { sinceMs: now, toldMs: now }
  waits.set(held, wait)
  if (now - wait.toldMs > tellEveryMs) {
    wait.toldMs = now
    parts.news.heldBack(now - wait.sinceMs)
  }
  return 2 + (now - wait.sinceMs) / 4
}

async function move(parts: SubscriptionParts, held: HeldCursor, seq: number, wantsWake: boolean): Promise<Turn> {
  const [moved] = await parts.store.run(moveCursor, { ...held.fence, seq, wantsWake })
  if (!moved) return 'lost'
  noteMove(held, seq)
  held.wantsWake = wantsWake
  return 0
}

function noteMove(held: HeldCursor, seq: number): void {
  held.seq = seq
  held.movedSeq = seq
  held.movedMs = performance.now()
  held.crashes = Math.min(held.crashes, carefulAfter)
}

async function dispatchAll(
  parts: SubscriptionParts,
  held: HeldCursor,
  rows: EventRow[],
): Promise<'all' | 'left' | 'lost'> {
  const how = dispatching(parts, held)
  for (const [index, row] of rows.entries()) {
    if (held.leaving.aborted) return leaveAt(parts, held, rows[index - 1])
    const ended = await dispatch(how, eventOf(row), held)
    if (ended.kind === 'interrupted') return held.lost.aborted ? 'lost' : leaveAt(parts, held, rows[index - 1])
    const isDue = performance.now() - held.movedMs > flushMs
    if (ended.kind === 'poison') {
      if ((await park(parts, held, row, ended.failures, ended.error)) === 'lost') return 'lost'
    } else if (isDue && (await move(parts, held, row.seq, held.wantsWake)) === 'lost') return 'lost'
  }
  parts.news.handled(rows.length)
  return 'all'
}

/** Goes in good order: what was handled need not be handled again. */
async function leaveAt(parts: SubscriptionParts, held: HeldCursor, last: EventRow | undefined): Promise<'left'> {
  if (last && last.seq > held.seq && !held.lost.aborted) await move(parts, held, last.seq, false)
  return 'left'
}

function dispatching(parts: SubscriptionParts, held: HeldCursor): DispatchParts {
  return {
    ...parts,
    async onFailure(event, failures, error) {
      parts.news.failed(event.seq, failures, error)
      await parts.store.run(noteFailure, { ...held.fence, failingSeq: event.seq, failures, error })
    },
  }
}

async function park(
  parts: SubscriptionParts,
  held: HeldCursor,
  row: EventRow,
  failures: number,
  error: string,
): Promise<Turn> {
  const [parked] = await parts.store.run(parkEvent, {
    ...held.fence,
    seq: row.seq,
    event: JSON.stringify(row),
    failures,
    error,
  })
  if (!parked) return 'lost'
  noteMove(held, row.seq)
  parts.news.parked(row.seq, error)
  return 0
}

/** Handles parked events that somebody asked for. They come before what is new, and out of the order of their jobs. */
async function replayDue(parts: SubscriptionParts, held: HeldCursor): Promise<'none' | 'some' | 'lost'> {
  const due = await parts.store.run(dueParked, { ...about(held), limit: 10 })
  const how = dispatching(parts, held)
  const [first] = due
  if (first && held.crashes >= crashBudget) return putBack(parts, held, first.seq)
  for (const row of due) {
    if (held.leaving.aborted) return 'some'
    const ended = await dispatch(how, eventOf(rowOf(row)), held)
    if (ended.kind === 'interrupted') return held.lost.aborted ? 'lost' : 'some'
    const [kept] =
      ended.kind === 'handled'
        ? await parts.store.run(unparkEvent, { ...held.fence, seq: row.seq })
        : await parts.store.run(keepParked, { ...held.fence, ...ended, seq: row.seq })
    if (!kept) return 'lost'
    if (ended.kind === 'poison') parts.news.parked(row.seq, ended.error)
  }
  return due.length === 0 ? 'none' : 'some'
}

/** What was asked for kills every reader, before any of them comes to what is new: nobody is asked for it any more. */
async function putBack(parts: SubscriptionParts, held: HeldCursor, seq: number): Promise<'some' | 'lost'> {
  const error = readersDied(held)
  const [kept] = await parts.store.run(keepParked, { ...held.fence, seq, failures: crashBudget, error })
  if (!kept) return 'lost'
  parts.news.parked(seq, error)
  // written down, or the next reader would take what is new for the killer
  return (await move(parts, held, held.seq, held.wantsWake)) === 'lost' ? 'lost' : 'some'
}

function readersDied({ crashes }: HeldCursor): string {
  return `Its readers died: ${crashes} in a row.`
}

function rowOf({ event }: ParkedRow): EventRow {
  return { ...event, at: new Date(event.at) }
}
