import type { Config } from '../config/config.ts'
import { backoffOf } from '../job/backoff.ts'
import type { AbortReason, AnyJob, AnyStage, Backoff } from '../job/define.ts'
import type { Each } from '../job/fan-out.ts'
import type { HeldFence, JobId } from '../job/id.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Traced } from '../trace/trace.ts'
import type { ClaimedRow } from './claim-batch.ts'

/** The reason that a handler's signal carries once it is aborted. */
export class AttemptAborted extends Error {
  readonly reason: AbortReason

  constructor(reason: AbortReason) {
    super(`This attempt was aborted: ${reason.replace('_', ' ')}.`)
    this.name = 'AttemptAborted'
    this.reason = reason
  }
}

/** An attempt that this worker runs. */
export interface Attempt {
  readonly fence: HeldFence
  readonly row: ClaimedRow
  readonly job: AnyJob
  readonly stage: AnyStage
  readonly allowance: Allowance
  /** When its handler was started, by the monotonic clock. */
  startedAtMs: number
  abortedBy: AbortReason | undefined
  abortedAtMs: number
  /** Whether its outcome is decided. What its handler returns later is discarded. */
  isOver: boolean
  /** Null if this process has no tracer. */
  span: Traced | null
  /** The outcome that the database refused to write, if it did. */
  refused: Outcome | undefined
  /** For how long its handler gave it back, if it did. */
  snoozedMs: number | undefined
  abort(reason: AbortReason, nowMs: number): void
  signal(): AbortSignal
}

/** The fence of a claimed job. */
export function heldFenceOf({ id, attempt, sessionId, leaseId, slot, leaseSize }: ClaimedRow): HeldFence {
  return { id: id as JobId, attempt, sessionId, leaseId, slot, leaseSize }
}

/** The limits of a stage, which all its attempts share. */
export interface Allowance {
  readonly timeoutMs: number
  readonly retries: number
  readonly backoff: Required<Backoff>
}

function allowanceOf(config: Config, rules: Pick<AnyStage, 'timeoutMs' | 'retries' | 'backoff'>): Allowance {
  return {
    timeoutMs: rules.timeoutMs ?? config.jobTimeoutMs,
    retries: rules.retries ?? config.retries,
    backoff: backoffOf(config, rules.backoff),
  }
}

/** A class, because there are tens of thousands a second, and their methods should be created only once. */
class HeldAttempt implements Attempt {
  readonly fence: HeldFence
  readonly row: ClaimedRow
  readonly job: AnyJob
  readonly stage: AnyStage
  readonly allowance: Allowance
  startedAtMs = 0
  abortedBy: AbortReason | undefined = undefined
  abortedAtMs = 0
  isOver = false
  span: Traced | null = null
  refused: Outcome | undefined = undefined
  snoozedMs: number | undefined = undefined
  // created on first use, because most handlers of short jobs never look at their signal
  #controller: AbortController | undefined = undefined

  constructor(job: AnyJob, stage: AnyStage, row: ClaimedRow, allowance: Allowance) {
    this.fence = heldFenceOf(row)
    this.row = row
    this.job = job
    this.stage = stage
    this.allowance = allowance
  }

  abort(reason: AbortReason, nowMs: number): void {
    if (this.abortedBy) return
    this.abortedBy = reason
    this.abortedAtMs = nowMs
    this.#controller?.abort(new AttemptAborted(reason))
  }

  signal(): AbortSignal {
    this.#controller ??= new AbortController()
    const { signal } = this.#controller
    if (this.abortedBy && !signal.aborted) this.#controller.abort(new AttemptAborted(this.abortedBy))
    return signal
  }
}

/** Returns a function that turns claimed rows into attempts. */
export function attemptMaker(config: Config): (job: AnyJob, row: ClaimedRow) => Attempt {
  const own = new Map<AnyStage, Allowance>()
  const parts = new Map<AnyStage, Allowance>()
  return (job, row) => {
    const stage = job.stages[row.stage] as AnyStage
    const known = row.is_part ? parts : own
    let allowance = known.get(stage)
    if (!allowance) {
      allowance = allowanceOf(config, row.is_part ? eachOf(stage) : stage)
      known.set(stage, allowance)
    }
    return new HeldAttempt(job, stage, row, allowance)
  }
}

/**
 * What a fan-out stage runs for each item, unless items have their own kind. If an item was created by another version
 * of the code, its stage may have nothing to run for it.
 */
export function eachOf(stage: AnyStage): Each<unknown, unknown> {
  if (typeof stage.each === 'function') return { run: stage.each }
  if (stage.each && !('stages' in stage.each)) return stage.each
  return {
    run: () => {
      throw new Error(
        `Stage ${stage.name} has no \`each\` in this version of its kind, so nothing can run for this item.`,
      )
    },
  }
}
