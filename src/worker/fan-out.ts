import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { type BarrierRow, openBarrier, verifyJoined } from '../fan-out/fan-out.sql.ts'
import { produceItems } from '../fan-out/produce.ts'
import { resultsOf } from '../fan-out/results.ts'
import type { StageContext } from '../job/define.ts'
import { failedItems, type Summary, thresholdOf } from '../job/fan-out.ts'
import { isNobodysFault } from '../postgres/connection.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'
import { errorOf, failure, success, thrownBy } from './conclude.ts'
import type { HandlerParts } from './handler.ts'

/**
 * Runs an attempt of a stage that fans out. Its barrier says what to do: if it isn't sealed, produce items; if it is
 * sealed, wait for them (again, after a redo); if it is joined, run the join.
 */
export async function runFanOut(parts: HandlerParts, attempt: Attempt, ctx: StageContext): Promise<Outcome> {
  try {
    const barrier = await open(parts, attempt)
    // without a barrier the attempt is no longer ours, and the release will be refused
    if (!barrier) return { move: 'release' }
    // a barrier that was joined before it was sealed has nothing to join yet: its items are still to come
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
    // it is not the handler's fault if our database is unreachable or full, but it is if its own files or servers are
    if (error instanceof HoldfastError && isNobodysFault(error)) return { move: 'release' }
    throw error
  }
}

/**
 * The outcome if the producer throws after it has produced items. It is retried like any handler. Once its retries are
 * spent, the items that it produced decide how the job ends. There might have been more, so the job is partial at best.
 * A permanent error or a timeout fails the job: the first says that the whole is pointless, the second that items are
 * missing.
 */
function shortOf(attempt: Attempt, thrown: unknown): Outcome {
  if (thrown instanceof HoldfastError && isNobodysFault(thrown)) throw thrown
  const error = errorOf(attempt, thrown)
  const outcome = thrownBy(attempt, thrown)
  return outcome.move === 'fail' && error.code === 'handler_failed' ? { move: 'fanOut', error } : outcome
}

async function open({ store }: HandlerParts, { fence, stage }: Attempt): Promise<BarrierRow | undefined> {
  const { count, share } = thresholdOf(stage.tolerate)
  const [barrier] = await store.run(openBarrier, {
    fence,
    id: uuidv7(),
    // the largest value that the column holds, and more than any fan-out has items
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
  if (barrier.is_over_threshold) {
    const numbers = `${summary.failed} of ${summary.total} items failed and ${summary.cancelled} were cancelled`
    if (barrier.is_expired && barrier.is_stopped)
      return failure(attempt, {
        code: 'barrier_expired',
        message: `The fan-out of stage ${attempt.stage.name} expired: ${numbers}.`,
      })
    return failure(attempt, {
      code: 'items_failed',
      message: `${numbers}, more than stage ${attempt.stage.name} allows.`,
    })
  }
  const output = attempt.stage.join
    ? await attempt.stage.join(ctx, summary, resultsOf(parts.store, barrier.id))
    : summary
  return success(parts.config, attempt, output, failedItems(summary) > 0 || barrier.short !== null)
}
