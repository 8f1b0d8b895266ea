import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf, PermanentError } from '../errors/errors.ts'
import { backoffMs } from '../job/backoff.ts'
import type { AbortReason, AnyJob, AnyStage, StageContext } from '../job/define.ts'
import type { Fence, JobId } from '../job/id.ts'
import { encodeStorable } from '../job/storable.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
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
  /** When its handler was started, by the monotonic clock. */
  startedAtMs: number
  abortedBy: AbortReason | undefined
  abortedAtMs: number
  /** Whether its outcome was decided already, so that whatever the handler still returns is too late. */
  isOver: boolean
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
  // most handlers of short jobs never look at their signal, so it is made when first asked for
  let controller: AbortController | undefined
  const attempt: Attempt = {
    fence: fenceOf(row),
    row,
    job,
    stage,
    timeoutMs: stage.timeoutMs ?? config.jobTimeoutMs,
    startedAtMs: 0,
    abortedBy: undefined,
    abortedAtMs: 0,
    isOver: false,
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

/** Where a handler's reports go. */
export interface Reporter {
  progress(attempt: Attempt, done: number, total: number | undefined, note: string | undefined): void
  log(attempt: Attempt, message: string, data: Record<string, unknown> | undefined): void
}

/** Runs the handler and says how the attempt ended. Never throws: whatever a handler does is an outcome. */
export async function runHandler(config: Config, attempt: Attempt, reporter: Reporter): Promise<Outcome> {
  const input = await readInput(attempt)
  if ('error' in input) return failure(config, attempt, input.error)
  try {
    const output = await attempt.stage.run(contextOf(attempt, input.value, reporter))
    return success(config, attempt, output)
  } catch (thrown) {
    return failure(config, attempt, errorOf(attempt, thrown))
  }
}

function contextOf(attempt: Attempt, input: unknown, reporter: Reporter): StageContext {
  const { row } = attempt
  return {
    job: { id: attempt.fence.id, kind: row.kind, tenant: row.tenant, queue: row.queue, submittedAt: row.submitted_at },
    stage: attempt.stage.name,
    attempt: row.attempt,
    input,
    outputs: outputsOf(attempt),
    get signal() {
      return attempt.signal()
    },
    progress: (done, total, note) => reporter.progress(attempt, done, total, note),
    log: (message, data) => reporter.log(attempt, message, data),
  }
}

function outputsOf({ row, job }: Attempt): Record<string, unknown> {
  if (row.stage === 0) return {}
  const committed = row.outputs === null ? {} : JSON.parse(row.outputs)
  // a stage that returned nothing has no row; its output is null
  return Object.fromEntries(job.stages.slice(0, row.stage).map(({ name }) => [name, committed[name] ?? null]))
}

type Read = { value: unknown } | { error: JobError }

async function readInput({ row, job }: Attempt): Promise<Read> {
  if (row.input === null)
    return { error: { code: 'input_invalid', message: 'The stored input of this job is missing.' } }
  try {
    const value: unknown = JSON.parse(row.input)
    if (!job.input) return { value }
    const checked = await job.input['~standard'].validate(value)
    if (!checked.issues) return { value: checked.value }
    const message = `The stored input does not fit kind ${job.kind}: ${checked.issues[0]?.message}.`
    return { error: { code: 'input_invalid', message } }
  } catch (thrown) {
    return {
      error: {
        code: 'input_invalid',
        message: `The stored input of kind ${job.kind} cannot be read: ${messageOf(thrown)}`,
      },
    }
  }
}

function success(config: Config, attempt: Attempt, output: unknown): Outcome {
  const stageName = attempt.stage.name
  const move = attempt.row.stage + 1 < attempt.job.stages.length ? 'advance' : 'finish'
  if (output === undefined || output === null) return { move, stageName, output: null }
  const encoded = encodeStorable(output, 'output')
  if ('problem' in encoded)
    return failure(config, attempt, {
      code: 'output_invalid',
      message: `What stage ${stageName} returned cannot be stored: ${encoded.path} ${encoded.problem}.`,
    })
  const bytes = Buffer.byteLength(encoded.json)
  if (bytes > config.maxOutputBytes)
    return failure(config, attempt, {
      code: 'output_too_large',
      message: `Stage ${stageName} returned ${bytes} bytes; the limit is ${config.maxOutputBytes} (setting maxOutputBytes). Store large data elsewhere and return a reference.`,
    })
  return { move, stageName, output: encoded.json }
}

const permanentCodes = new Set(['permanent', 'input_invalid', 'output_invalid', 'output_too_large'])

/** The outcome of an attempt that failed with this error. */
export function failure(config: Config, attempt: Attempt, error: JobError): Outcome {
  // a handler that ends because it was asked to is not at fault
  if (attempt.abortedBy === 'shutdown' || attempt.abortedBy === 'lease_lost') return { move: 'release' }
  const { stage, row } = attempt
  const retries = stage.retries ?? config.retries
  if (permanentCodes.has(error.code) || row.failures >= retries)
    return { move: 'fail', error, isOptional: stage.optional === true }
  const backoff = { baseMs: config.backoffBaseMs, factor: 2, maxMs: config.backoffMaxMs, ...stage.backoff }
  return { move: 'retry', error, delayMs: backoffMs(row.failures + 1, backoff) }
}

/** The error of an attempt that ran out of time. */
export function timeoutError(attempt: Attempt): JobError {
  return {
    code: 'timeout',
    message: `Stage ${attempt.stage.name} ran longer than its time-out of ${attempt.timeoutMs} ms.`,
  }
}

function errorOf(attempt: Attempt, thrown: unknown): JobError {
  if (attempt.abortedBy === 'timeout') return timeoutError(attempt)
  const isPermanent = thrown instanceof PermanentError || (thrown as Error | null)?.name === 'PermanentError'
  const code = isPermanent ? 'permanent' : thrown instanceof HoldfastError ? thrown.code : 'handler_failed'
  const stack =
    thrown instanceof Error
      ? thrown.stack
          ?.split('\n')
          .slice(1, 6)
          .map((line) => line.trim())
          .join('\n')
      : undefined
  const error = { code, message: clean(messageOf(thrown)) } as JobError
  return stack ? { ...error, stack: clean(stack) } : error
}

/** Error texts come from anywhere: what Postgres can't hold is replaced, so that no failure is lost for its wording. */
function clean(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
