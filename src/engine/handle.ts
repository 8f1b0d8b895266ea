import { HoldfastError } from '../errors/errors.ts'
import { refuseUnknown } from '../errors/options.ts'
import type { AnyJob } from '../job/define.ts'
import type { JobId } from '../job/id.ts'
import type { SubmitOutcome } from '../job/unique.ts'
import type { Result } from '../reads/job.ts'
import type { Ending, Results } from '../reads/results.ts'
import type { Submitted } from '../submit/submit.ts'

/** The handle of a job: its id, and a way to wait for its result. */
export interface Handle<J extends AnyJob> {
  /** The id of the job. */
  readonly id: JobId
  /** False if the job existed before: it has the same key, or holds the same unique key. */
  readonly isNew: boolean
  /** What the submit did. Other than `submitted` only with a key or a unique key. */
  readonly outcome: SubmitOutcome
  /**
   * Waits until the job is final and returns its result. Throws job_failed, job_cancelled, or result_timeout (the job continues). All waits of
   * a process share one connection and query together, so tens of thousands may wait at once.
   */
  result(options?: { timeout?: number; signal?: AbortSignal }): Promise<Result<J>>
}

const known = { timeout: true, signal: true }

/** Makes the handle of a job. */
export function makeHandle<J extends AnyJob>(submitted: Submitted, results: Results): Handle<J> {
  const { id, isNew, outcome } = submitted
  return {
    id,
    isNew,
    outcome,
    async result(options = {}) {
      refuseUnknown('result', options, known)
      const { timeout, signal } = options
      if (timeout !== undefined && !(timeout >= 0))
        throw new HoldfastError('option_invalid', `The option timeout must be at least 0 ms, not ${timeout}.`)
      return resultOf<J>(await results.wait(id, { timeoutMs: timeout, signal }))
    },
  }
}

function resultOf<J extends AnyJob>({ id, state, stage, error, outputs }: Ending): Result<J> {
  const byStage = Object.fromEntries(outputs.map(({ name, output }) => [name, output]))
  // a stage that returned nothing has no row, so the last row may belong to an earlier stage
  const output = outputs.find((one) => one.stage === stage)?.output ?? null
  if (state === 'succeeded') return { state, output, outputs: byStage } as Result<J>
  // without an error, all stages have returned, and only some items failed
  if (state === 'partial')
    return { state, output: error ? null : output, outputs: byStage, error } as unknown as Result<J>
  if (state === 'cancelled')
    throw new HoldfastError('job_cancelled', `Job ${id} was cancelled: ${error?.message ?? ''}`, { details: { error } })
  throw new HoldfastError('job_failed', `Job ${id} failed: ${error?.message ?? 'no error was recorded'}`, {
    details: { error },
  })
}
