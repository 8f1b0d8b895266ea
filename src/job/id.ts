import { randomFillSync } from 'node:crypto'
import { V7Generator } from 'uuidv7'

/** The id of a job: a version 7 UUID, so ids sort by submit time. */
export type JobId = string & { readonly brand: 'JobId' }

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

// drawn a thousand at a time: each system call costs more than everything else about an id
const drawn = new Uint32Array(1024)
let next = drawn.length

const generator = new V7Generator({
  nextUint32() {
    if (next === drawn.length) {
      randomFillSync(drawn)
      next = 0
    }
    return drawn[next++] as number
  },
})

/** A fresh job id. */
export function freshJobId(): JobId {
  return generator.generate().toString() as JobId
}

/** The id in a string from outside; null if it is not an id. */
export function parseJobId(word: string): JobId | null {
  return shape.test(word) ? (word.toLowerCase() as JobId) : null
}

/** The id below all others. */
export const lowestId = '00000000-0000-0000-0000-000000000000'
/** The id above all others. */
export const highestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The lowest id that a job submitted at this time or later can have. */
export function firstIdAt(at: Date): JobId {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000` as JobId
}

/** When the job with this id was submitted, by the submitter's clock. */
export function timeOfId(id: JobId): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
}

/** One attempt of a job. */
export interface Fence {
  readonly id: JobId
  readonly attempt: number
}

/**
 * The right to write about one attempt: its bit in the lease of its claim. Once the bit is set, or the lease is gone, the attempt no longer
 * belongs to this worker.
 */
export interface HeldFence extends Fence {
  /** The session that claimed it. A late write is recorded under this session, even if the worker has another one by then. */
  readonly sessionId: number
  readonly leaseId: number
  readonly slot: number
  readonly leaseSize: number
}
