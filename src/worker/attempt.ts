import type { Config } from '../config/config.ts'
import type { AbortReason, AnyJob, AnyStage, Backoff } from '../job/define.ts'
import type { Each } from '../job/fan-out.ts'
import type { Fence, JobId } from '../job/id.ts'
import type { Traced } from '../trace/trace.ts'
import type { ClaimedRow } from './claim.sql.ts'

/** The reason of a handler's fired signal. */
export class AttemptAborted extends Error {
  readonly reason: AbortReason

  constructor(reason: AbortReason) {
    super(`This attempt was aborted: ${reason.replace('_', ' ')}.`)
    this.name = 'AttemptAborted'
    this.reason = reason
  }
}

/** One attempt in the hands of this worker. */
export interface Attempt {
  readonly fence: Fence
  readonly row: ClaimedRow
  readonly job: AnyJob
  readonly stage: AnyStage
  readonly timeoutMs: number
  readonly retries: number
  readonly backoff: Required<Backoff>
  /** When its handler was started, by the monotonic clock. */
  startedAtMs: number
  abortedBy: AbortReason | undefined
  abortedAtMs: number
  /** Whether its outcome was decided already, so that whatever the handler still returns is too late. */
  isOver: boolean
  /** Null if nobody traces. */
  span: Traced | null
  abort(reason: AbortReason, nowMs: number): void
  signal(): AbortSignal
}

/** The fence of a claimed row. */
export function fenceOf(row: ClaimedRow): Fence {
  return { id: row.id as JobId, attempt: row.attempt }
}

/** Makes an attempt of a claimed row. */
export function makeAttempt(config: Config, job: AnyJob, row: ClaimedRow): Attempt {
  const stage = job.stages[row.stage] as AnyStage
  const rules: Pick<AnyStage, 'timeoutMs' | 'retries' | 'backoff'> = row.is_part ? eachOf(stage) : stage
  // most handlers of short jobs never look at their signal, so it is made when first asked for
  let controller: AbortController | undefined
  const attempt: Attempt = {
    fence: fenceOf(row),
    row,
    job,
    stage,
    timeoutMs: rules.timeoutMs ?? config.jobTimeoutMs,
    retries: rules.retries ?? config.retries,
    backoff: { baseMs: config.backoffBaseMs, factor: 2, maxMs: config.backoffMaxMs, ...rules.backoff },
    startedAtMs: 0,
    abortedBy: undefined,
    abortedAtMs: 0,
    isOver: false,
    span: null,
    abort(reason, nowMs) {
      if (attempt.abortedBy) return
      attempt.abortedBy = reason
      attempt.abortedAtMs = nowMs
      controller?.abort(new AttemptAborted(reason))
    },
    signal() {
      controller ??= new AbortController()
      if (attempt.abortedBy && !controller.signal.aborted) controller.abort(new AttemptAborted(attempt.abortedBy))
      return controller.signal
    },
  }
  return attempt
}

/** What a fan-out stage runs per item, if that is no kind of its own. Items of an earlier version of the code may find nothing to run. */
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
