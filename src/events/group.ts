import { eventOf, type LogEvent } from './event.ts'
import type { GroupRow } from './groups.sql.ts'
import type { ParkedRow } from './parked.sql.ts'

/** A group of readers. */
export interface Group {
  name: string
  /** The event types that it reads; null for all. */
  types: string[] | null
  /** Whether it also reads events of fan-out items. */
  items: boolean
  partitions: number
  createdAt: Date
  /** Everything up to this position in the log is handled, in every partition. */
  seq: number
  /** Live readers, and the number of partitions that they hold. */
  readers: number
  held: number
  parked: number
  /** How many log positions it is behind, and the age of the oldest event that it has not handled. */
  behind: number
  behindMs: number
  /** Events that are failing at the moment. */
  failing: { seq: number; failures: number; error: string }[]
  /** The open transaction that it waits for: events written after it began can be read only once it ends. */
  heldBy: { pid: number | null; application: string | null; prepared: string | null; forMs: number } | null
}

/** An event that a group has parked because it could not handle it. */
export interface ParkedEvent {
  event: LogEvent
  error: string
  failures: number
  parkedAt: Date
  /** When its replay was requested, or for when Holdfast has scheduled it (only webhooks); null if neither. */
  replayAt: Date | null
}

/** The group in a row. */
export function groupOf({ created_at, behind_ms, failing, held_by, ...row }: GroupRow): Group {
  return { ...row, createdAt: created_at, behindMs: behind_ms, failing: failing ?? [], heldBy: held_by }
}

/** The parked event in a row. */
export function parkedOf(row: ParkedRow): ParkedEvent {
  const { error, failures, parked_at, replay_at } = row
  return { event: parkedEventOf(row), error, failures, parkedAt: parked_at, replayAt: replay_at }
}

/** The event that was parked. */
export function parkedEventOf({ event }: ParkedRow): LogEvent {
  return eventOf({ ...event, at: new Date(event.at) })
}
