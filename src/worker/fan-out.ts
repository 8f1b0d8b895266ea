import { uuidv7 } from 'uuidv7'
import { type BarrierRow, openBarrier, verifyJoined } from '../barrier/barrier.sql.ts'
import { produceItems } from '../barrier/produce.ts'
import { resultsOf } from '../barrier/results.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { StageContext } from '../job/define.ts'
import { type Summary, thresholdOf } from '../job/fan-out.ts'
import type { Outcome } from '../settle/outcome.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Attempt } from './attempt.ts'
import { errorOf, failure, success } from './conclude.ts'
import type { HandlerParts } from './handler.ts'

/**
 * Runs an attempt of a stage that fans out. What there is to do is what its barrier says: not sealed, items are produced; sealed, the job
 * waits for them (again, after a redo); joined, the join runs.
 */
export async function runFanOut(parts: HandlerParts, attempt: Attempt, ctx: StageContext): Promise<Outcome> {
  try {
    const barrier = await open(parts, attempt)
    // no barrier: the attempt is no longer ours, and the release says so
    if (!barrier) return { move: 'release' }
    // one that was closed before it was sealed has nothing to join: its items are still to come
    if (barrier.is_joined && barrier.is_sealed) {
      const [corrected] = await parts.store.run(verifyJoined, { id: barrier.id })
      const verified = corrected ?? barrier
      return verified.is_joined ? await join(parts, attempt, ctx, verified) : { move: 'fanOut' }
    }
    if (barrier.is_sealed) return { move: 'fanOut' }
    const produced = await produceItems(parts, attempt, ctx, barrier)
    if (produced === 'lost') return { move: 'release' }
    return produced === 'all' ? { move: 'fanOut' } : shortOf(attempt, produced.thrown)
  } catch (error) {
    // that our database was out of reach is not the handler's fault; a file or a server that the handler misses is
    if (error instanceof HoldfastError && isConnectionError(error)) return { move: 'release' }
    throw error
  }
}

/**
 * What follows if the producer throws after it has given items. It is run again like any handler; once its retries are spent, what it gave
 * stands, and the items decide how the job ends: nobody can know whether there would have been more, so it is partial at best. A permanent
 * error says that the whole is in vain, and a time-out that there was more to come.
 */
function shortOf(attempt: Attempt, thrown: unknown): Outcome {
  if (thrown instanceof HoldfastError && isConnectionError(thrown)) throw thrown
  const error = errorOf(attempt, thrown)
  const outcome = failure(attempt, error)
  return outcome.move === 'fail' && error.code === 'handler_failed' ? { move: 'fanOut', error } : outcome
}

async function open({ store }: HandlerParts, { fence, stage }: Attempt): Promise<BarrierRow | undefined> {
  const { count, share } = thresholdOf(stage.tolerate)
  const [barrier] = await store.run(openBarrier, {
    fence,
    id: uuidv7(),
    // more than any fan-out has items, and all that the column holds
    count: count === null ? null : Math.min(count, 2_147_483_647),
    share,
    expiresMs: stage.expiresMs ?? null,
  })
  return barrier
}

async function join(parts: HandlerParts, attempt: Attempt, ctx: StageContext, barrier: BarrierRow): Promise<Outcome> {
  const summary: Summary = {
    total: barrier.total ?? 0,
    succeeded: barrier.succeeded,
    failed: barrier.failed,
    cancelled: barrier.cancelled,
    ...(barrier.short && { error: barrier.short }),
  }
  const flaws = summary.failed + summary.cancelled
  if (barrier.is_spoilt) {
    const numbers = `${summary.failed} of ${summary.total} items failed and ${summary.cancelled} were cancelled`
    if (barrier.is_expired && barrier.is_stopped)
      return failure(attempt, {
        code: 'barrier_expired',
        message: `The fan-out of stage ${attempt.stage.name} expired: ${numbers}.`,
      })
    return failure(attempt, {
      code: 'items_failed',
      message: `${numbers}, more than stage ${attempt.stage.name} tolerates.`,
    })
  }
  const output = attempt.stage.join
    ? await attempt.stage.join(ctx, summary, resultsOf(parts.store, barrier.id))
    : summary
  return success(parts.config, attempt, output, flaws > 0 || barrier.short !== null)
}
