import type { ErrorCode } from '../errors/errors.ts'
import type { HeldFence } from '../job/id.ts'

/** An error as it is stored and shown. */
export interface JobError {
  code: ErrorCode
  message: string
  stack?: string
}

/**
 * How an attempt ended. `hasFailedItems`: items of its stage failed, within the threshold. `parked`: the outcome that
 * the database refused; the job keeps it and isn't run again. `holdMs`: how long the job, and all that wait at the same
 * gate, are held back. An error of a fan-out: its producer gave up early. The signal of a snooze: the job waits for it until
 * its wait ends, whatever the delay.
 */
export type Outcome =
  | { move: 'finish'; stageName: string; output: string | null; hasFailedItems?: boolean }
  | { move: 'advance'; stageName: string; output: string | null; hasFailedItems?: boolean }
  | { move: 'fanOut'; error?: JobError }
  | { move: 'retry'; error: JobError; delayMs: number; parked?: Outcome }
  | { move: 'fail'; error: JobError; isOptional: boolean }
  | { move: 'release'; holdMs?: number }
  | { move: 'snooze'; delayMs: number; signal?: string }

/** The outcome of one attempt, with the fence that permits writing it. */
export interface Settlement {
  fence: HeldFence
  outcome: Outcome
}

/** The result of a settle. `lease_lost`: another worker owns the job, or it was cancelled; nothing was written. */
export type Settled = 'settled' | 'lease_lost'
