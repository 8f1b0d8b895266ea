import { HoldfastError } from '../errors/errors.ts'
import { keyRefused } from './keyring.ts'
import type { Given } from './operation.ts'
import { z } from './zod.ts'

/** The longest that a request may wait. */
export const longestWaitMs = 60_000

/** The header by which a client says how long it would wait. */
export const preferHeader = z.string().max(200).optional().openapi({
  description: '`wait=10` waits up to so many seconds (at most 60) for the job to end.',
  example: 'wait=10',
})

/** How long the client would wait, of RFC 7240; undefined if it did not say. Preferences that nobody knows are no error. */
export function waitMsOf(prefer: string | undefined): number | undefined {
  const found = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec(prefer ?? '')
  return found ? Math.min(longestWaitMs, Number(found[1]) * 1000) : undefined
}

/** The header that tells a client that its wish was heard. */
export function appliedHeader(waitMs: number | undefined): Record<string, string> {
  return waitMs === undefined ? {} : { 'preference-applied': `wait=${waitMs / 1000}`, vary: 'prefer' }
}

/** Waits until the job is final or the time is over; whether it is final, the caller looks up. Ends early if the client goes or the server stops. */
export async function waitFor(given: Given, id: string, waitMs: number | undefined): Promise<void> {
  if (waitMs === undefined || waitMs === 0) return
  const done = given.door.limits.wait(given.caller)
  const counted = given.door.meter.waits()
  try {
    await given.hf.handle(id).result({ timeout: waitMs, signal: given.signal })
  } catch (error) {
    // how it ended is read from its row; only trouble on the way is trouble
    if (given.signal.aborted) return
    if (!(error instanceof HoldfastError) || !endings.has(error.code)) throw error
  } finally {
    done()
    counted()
  }
  // the key may have been revoked meanwhile
  if (!(await given.door.keyring.isStillGood(given.request))) throw keyRefused()
}

const endings = new Set(['job_failed', 'job_cancelled', 'result_timeout'])
