import { HoldfastError } from '../errors/errors.ts'
import { keyRefused } from './keyring.ts'
import type { Call } from './operation.ts'
import { z } from './zod.ts'

/** The longest that a request may wait. */
export const longestWaitMs = 60_000

/** The header that says how long a client wants to wait. */
export const preferHeader = z.string().max(200).optional().openapi({
  description: '`wait=10` waits up to 10 seconds for the job to end. Maximum: 60.',
  example: 'wait=10',
})

/** How long the client wants to wait (RFC 7240); undefined if it does not say. Unknown preferences are no error. */
export function waitMsOf(prefer: string | undefined): number | undefined {
  const found = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec(prefer ?? '')
  return found ? Math.min(longestWaitMs, Number(found[1]) * 1000) : undefined
}

/** The header that confirms the preference of a client. */
export function appliedHeader(waitMs: number | undefined): Record<string, string> {
  return waitMs === undefined ? {} : { 'preference-applied': `wait=${waitMs / 1000}`, vary: 'prefer' }
}

/** Waits until the job is final or the time is up. Ends early if the client disconnects or the server stops. The caller then looks up the job. */
export async function waitFor(call: Call, id: string, waitMs: number | undefined): Promise<void> {
  if (waitMs === undefined || waitMs === 0) return
  const done = call.gateway.limits.wait(call.caller)
  const counted = call.gateway.meter.waits()
  try {
    await call.hf.handle(id).result({ timeout: waitMs, signal: call.signal })
  } catch (error) {
    // how the job ended is read from its row; only errors of the wait itself count
    if (call.signal.aborted) return
    if (!(error instanceof HoldfastError) || !endings.has(error.code)) throw error
  } finally {
    done()
    counted()
  }
  // the key may have been revoked in the meantime
  if (!(await call.gateway.keyring.isStillGood(call.request))) throw keyRefused
}

const endings = new Set(['job_failed', 'job_cancelled', 'result_timeout'])
