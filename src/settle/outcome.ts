import type { ErrorCode } from '../errors/errors.ts'
import type { HeldFence } from '../job/id.ts'

/** What went wrong, as it is stored and shown. */
export interface JobError {
  code: ErrorCode
  message: string
  stack?: string
}

/**
 * How an attempt ended. `hasFlaws`: items of its stage failed within the threshold. `parked`: what the database refused; the job waits with
 * it and is not run again. A fan-out with an error: its producer gave up after some items.
 */
export type Outcome =
  | { move: 'finish'; stageName: string; output: string | null; hasFlaws?: boolean }
  | { move: 'advance'; stageName: string; output: string | null; hasFlaws?: boolean }
  | { move: 'fanOut'; error?: JobError }
  | { move: 'retry'; error: JobError; delayMs: number; parked?: Outcome }
  | { move: 'fail'; error: JobError; isOptional: boolean }
  | { move: 'release' }

/** The outcome of one attempt, with the fence that allows to write it. */
export interface Settlement {
  fence: HeldFence
  outcome: Outcome
}

/** What a settle answers. `lease_lost`: another worker owns the job, or somebody cancelled it; nothing was written. */
export type Settled = 'settled' | 'lease_lost'
