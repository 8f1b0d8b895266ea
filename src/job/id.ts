import { uuidv7 } from 'uuidv7'

/** The id of a job: a UUID of version 7, so ids sort by the time of their submit. */
export type JobId = string & { readonly brand: 'JobId' }

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** A fresh job id. */
export function freshJobId(): JobId {
  return uuidv7() as JobId
}

/** The id in a word from outside; null if it is none. */
export function parseJobId(word: string): JobId | null {
  return shape.test(word) ? (word.toLowerCase() as JobId) : null
}

/** The lowest id that a job submitted at that time or later can have. */
export function firstIdAt(at: Date): JobId {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000` as JobId
}

/** When a job with this id was submitted, by the clock of its submitter. */
export function timeOfId(id: JobId): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
}

/** One attempt of a job. */
export interface Fence {
  readonly id: JobId
  readonly attempt: number
}

/**
 * The right to write about one attempt: its bit in the lease of the claim that took it. Once the bit is set, or the lease is gone, the
 * attempt is somebody else's, or nobody's any more.
 */
export interface HeldFence extends Fence {
  /** The session that claimed it. A late write is recorded under that one, whichever session the worker has by then. */
  readonly sessionId: number
  readonly leaseId: number
  readonly slot: number
  readonly leaseSize: number
}
