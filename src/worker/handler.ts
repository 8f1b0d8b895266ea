import type { Config } from '../config/config.ts'
import { messageOf } from '../errors/errors.ts'
import type { StageContext } from '../job/define.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import type { Store } from '../store/store.ts'
import { type Attempt, eachOf } from './attempt.ts'
import { errorOf, failure, success } from './conclude.ts'
import { runFanOut } from './fan-out.ts'

/** Where a handler's reports go. */
export interface Reporter {
  progress(attempt: Attempt, done: number, total: number | undefined, note: string | undefined): void
  log(attempt: Attempt, message: string, data: Record<string, unknown> | undefined): void
}

/** What it takes to run a handler. */
export interface HandlerParts {
  config: Config
  store: Store
  reporter: Reporter
}

/** Runs the handler and says how the attempt ended. Never throws: whatever a handler does is an outcome. */
export async function runHandler(parts: HandlerParts, attempt: Attempt): Promise<Outcome> {
  const input = await readInput(attempt)
  if ('error' in input) return failure(attempt, input.error)
  const ctx = contextOf(attempt, input.value, parts.reporter)
  const { stage, row } = attempt
  try {
    if (row.is_part) return success(parts.config, attempt, await eachOf(stage).run(ctx, input.value))
    if (stage.run) return success(parts.config, attempt, await stage.run(ctx))
    return await runFanOut(parts, attempt, ctx)
  } catch (thrown) {
    return failure(attempt, errorOf(attempt, thrown))
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
  if (row.stage === 0 || row.is_part) return {}
  const committed = row.outputs === null ? {} : JSON.parse(row.outputs)
  // a stage that returned nothing has no row; its output is null
  return Object.fromEntries(job.stages.slice(0, row.stage).map(({ name }) => [name, committed[name] ?? null]))
}

type Read = { value: unknown } | { error: JobError }

async function readInput({ row, job, stage }: Attempt): Promise<Read> {
  if (row.input === null)
    return { error: { code: 'input_invalid', message: 'The stored input of this job is missing.' } }
  try {
    const value: unknown = JSON.parse(row.input)
    const schema = row.is_part ? stage.item : job.input
    if (!schema) return { value }
    const checked = await schema['~standard'].validate(value)
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
