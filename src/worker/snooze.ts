import { HoldfastError } from '../errors/errors.ts'
import { delayRule, isDelay } from '../job/wait.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'

/** Ends a handler that gave its attempt back. It is not an error: what counts is that `snooze` was called. */
export class AttemptSnoozed extends Error {
  constructor(ms: number) {
    super(`This attempt was given back for ${ms} ms.`)
    this.name = 'AttemptSnoozed'
  }
}

/** Gives an attempt back for a while, once its handler has ended. */
export function snooze(attempt: Attempt, ms: number): never {
  if (!isDelay(ms))
    throw new HoldfastError('option_invalid', `snooze(ms) takes ${delayRule}, not ${JSON.stringify(ms) ?? String(ms)}.`)
  attempt.snoozedMs = ms
  throw new AttemptSnoozed(ms)
}

/** The outcome of an attempt: if its handler gave it back, whatever it returned or threw after that is discarded. */
export function unlessSnoozed({ snoozedMs, abortedBy }: Attempt, outcome: Outcome): Outcome {
  // a handler that was aborted meanwhile has run out of time, or lost its lease
  return snoozedMs === undefined || abortedBy !== undefined ? outcome : { move: 'snooze', delayMs: snoozedMs }
}
