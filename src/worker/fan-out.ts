import { uuidv7 } from 'uuidv7'
import { type BarrierRow, openBarrier, verifyJoined } from '../fan-out/fan-out.sql.ts'
import { produceItems } from '../fan-out/produce.ts'
import { resultsOf } from '../fan-out/results.ts'
import type { StageContext } from '../job/define.ts'
import { failedItems, type Summary, thresholdOf } from '../job/fan-out.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'
import { errorOf, failure, isBlameless, thrownBy } from './conclude.ts'
import type { HandlerParts } from './handler.ts'

/** What running a stage led to: an output, or an outcome that is already decided. */
export type Ran = { output: unknown; hasFailedItems?: boolean } | { outcome: Outcome }

const released: Ran = { outcome: { move: 'release' } }
const fannedOut: Ran = { outcome: { move: 'fanOut' } }

/**
 * Runs an attempt of a stage that fans out. Its barrier says what to do: if it isn't sealed, produce items; if it is
 * sealed, wait for them (again, after a redo); if it is joined, run the join.
 */
export async function runFanOut(
  parts: HandlerParts,
  attempt: Attempt,
  ctx: StageContext,
  reads: (stored: unknown) => unknown,
): Promise<Ran> {
  try {
    const barrier = await open(parts, attempt, ctx.signal)
    // without a barrier the attempt is no longer ours, and the release will be refused
    if (!barrier) return released
    // a barrier that was joined before it was sealed has nothing to join yet: its items are still to come
    if (barrier.is_joined && barrier.is_sealed) {
      const [corrected] = await parts.store.contend(verifyJoined, { id: barrier.id }, { signal: ctx.signal })
      const verified = corrected ?? barrier
      // the answer may come after the lease was lost: then the join must not start beside that of another worker
      if (ctx.signal.aborted) return released
      return verified.is_joined ? await join(parts, attempt, { ctx, barrier: verified, reads }) : fannedOut
    }
    if (barrier.is_sealed) return fannedOut
    if (ctx.signal.aborted) return released
    const produced = await produceItems(parts, attempt, ctx, barrier)
    if (produced === 'lost') return released
    return produced === 'all' ? fannedOut : shortOf(attempt, produced.thrown)
  } catch (error) {
    // it is not the handler's fault if our rows are locked or our database is away, but it is if its own files or servers are
    if (isBlameless(error)) return released
    throw error
  }
}

/**
 * The outcome if the producer throws after it has produced items. It is retried like any handler. Once its retries are
 * spent, the items that it produced decide how the job ends. There might have been more, so the job is partial at best.
 * A permanent error or a timeout fails the job: the first says that the whole is pointless, the second that items are
 * missing.
 */
function shortOf(attempt: Attempt, thrown: unknown): Ran {
  if (isBlameless(thrown)) throw thrown
  const error = errorOf(attempt, thrown)
  const outcome = thrownBy(attempt, thrown)
  if (outcome.move === 'fail' && error.code === 'handler_failed') return { outcome: { move: 'fanOut', error } }
  // a middleware sees what its producer threw; the outcome is the same
  throw thrown
}

async function open(
  { store }: HandlerParts,
  { fence, stage }: Attempt,
  signal: AbortSignal,
): Promise<BarrierRow | undefined> {
  const { count, share } = thresholdOf(stage.tolerate)
  const params = {
    fence,
    id: uuidv7(),
    // the largest value that the column holds, and more than any fan-out has items
    count: count === null ? null : Math.min(count, 2_147_483_647),
    share,
    expiresMs: stage.expiresMs ?? null,
  }
  const [barrier] = await store.contend(openBarrier, params, { signal })
  return barrier
}

interface Joining {
  ctx: StageContext
  barrier: BarrierRow
  reads: (stored: unknown) => unknown
}

async function join(parts: HandlerParts, attempt: Attempt, { ctx, barrier, reads }: Joining): Promise<Ran> {
  const summary: Summary = {
    total: barrier.total ?? 0,
    succeeded: barrier.succeeded,
    failed: barrier.failed,
    cancelled: barrier.cancelled,
    ...(barrier.short && { error: barrier.short }),
  }
  if (barrier.is_over_threshold) {
    const numbers = `${summary.failed} of ${summary.total} items failed and ${summary.cancelled} were cancelled`
    const error: JobError =
      barrier.is_expired && barrier.is_stopped
        ? { code: 'barrier_expired', message: `The fan-out of stage ${attempt.stage.name} expired: ${numbers}.` }
        : { code: 'items_failed', message: `${numbers}, more than stage ${attempt.stage.name} allows.` }
    return { outcome: failure(attempt, error) }
  }
  const output = attempt.stage.join
    ? await attempt.stage.join(ctx, summary, resultsOf(parts.store, barrier.id, reads))
    : summary
  return { output, hasFailedItems: failedItems(summary) > 0 || barrier.short !== null }
}
