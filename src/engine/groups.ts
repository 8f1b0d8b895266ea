import { eventOf, type LogEvent } from '../events/event.ts'
import type { GroupRow } from '../events/groups.sql.ts'
import type { ParkedRow } from '../events/parked.sql.ts'

/** A group of readers. */
export interface Group {
  name: string
  /** The types that it reads; null for all. */
  types: string[] | null
  /** Whether it reads those of the items of fan-outs, too. */
  items: boolean
  partitions: number
  createdAt: Date
  /** Everything up to this place in the log is handled, in every partition. */
  seq: number
  /** Living readers, and how many partitions they hold. */
  readers: number
  held: number
  parked: number
  /** How many places of the log it is behind, and how old the oldest event is that it has not handled. */
  behind: number
  behindMs: number
  /** What fails at this moment. */
  failing: { seq: number; failures: number; error: string }[]
  /** The open transaction that it waits for: events written after it began are read only when it has ended. */
  heldBy: { pid: number | null; application: string | null; prepared: string | null; forMs: number } | null
}

/** An event that a group has put aside because it could not handle it. */
export interface ParkedEvent {
  event: LogEvent
  error: string
  failures: number
  parkedAt: Date
  /** When somebody asked for it to be handled once more; null if nobody did. */
  replayAt: Date | null
}

/** The group in a row. */
export function groupOf({ created_at, behind_ms, failing, held_by, ...row }: GroupRow): Group {
  return { ...row, createdAt: created_at, behindMs: behind_ms, failing: failing ?? [], heldBy: held_by }
}

/** The parked event in a row. */
export function parkedOf({ event, error, failures, parked_at, replay_at }: ParkedRow): ParkedEvent {
  return {
    event: eventOf({ ...event, at: new Date(event.at) }),
    error,
    failures,
    parkedAt: parked_at,
    replayAt: replay_at,
  }
}
