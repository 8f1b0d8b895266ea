/**
 * Events that can't be read: the server does not find a part of their data, for example. A group must not stand still at one of them. So it
 * is parked as far as it can be read, and read again when it is replayed.
 */
import { messageOf } from '../errors/errors.ts'
import { isPassing } from '../postgres/connection.ts'
import type { Runner } from '../postgres/store.ts'
import { type EventRow, eventOf, type LogEvent } from './event.ts'
import { parkedEventOf } from './group.ts'
import { type ReadBy, readEvents } from './log.sql.ts'
import { dueParked, type ParkedRow } from './parked.sql.ts'

/** What can be read of an event. Null if there is no such event, or the group does not want it. */
export async function stubOf(store: Runner, by: ReadBy, seq: number): Promise<EventRow | null> {
  try {
    const [row] = await store.run(readEvents, { ...by, ...only(seq), isBare: true })
    return row ? { ...row, isUnread: true } : null
  } catch (error) {
    if (isPassing(error)) throw error
    return { ...unknown, seq, at: new Date() }
  }
}

const unknown = {
  type: 'unreadable',
  state: null,
  job_id: null,
  kind: null,
  tenant: '',
  session_id: null,
  attempt: 0,
  stage: 0,
  item: null,
  data: null,
  isUnread: true,
} as const

/** Whether nothing could be read of an event. */
export function isUnknown({ type }: EventRow): boolean {
  return type === unknown.type
}

/** A parked event as it is to be handled. Text says why it still can't be read. */
export async function replayedOf(store: Runner, by: ReadBy, row: ParkedRow): Promise<LogEvent | string> {
  if (!row.event.isUnread) return parkedEventOf(row)
  try {
    // whichever partition of the group parked it
    const [again] = await store.run(readEvents, { ...by, partition: 0, partitions: 1, ...only(row.seq) })
    return again ? eventOf(again) : "It couldn't be read when it was parked, and is no longer in the log."
  } catch (error) {
    if (isPassing(error)) throw error
    return unreadable(error)
  }
}

/** The parked events to replay; or, if the first of them can't be read, its number and the reason. */
export async function parkedToReplay(
  store: Runner,
  by: ReadBy,
  limit: number,
): Promise<ParkedRow[] | { seq: number; error: string }> {
  try {
    return await store.run(dueParked, { ...by, limit })
  } catch (error) {
    if (isPassing(error)) throw error
    // the first one that can be read must not wait for those that can't
    if (limit > 1) return parkedToReplay(store, by, 1)
    const [first] = await store.run(dueParked, { ...by, limit, isBare: true })
    return first ? { seq: first.seq, error: unreadable(error) } : []
  }
}

/** Why an event is parked that can't be read. */
export function unreadable(error: unknown): string {
  return `It can't be read: ${messageOf(error)}`
}

function only(seq: number) {
  return { after: seq - 1, upTo: seq, limit: 1 }
}
