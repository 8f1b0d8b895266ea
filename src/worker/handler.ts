import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Schema, StageContext } from '../job/define.ts'
import type { ItemContext } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import { type Attempt, eachOf } from './attempt.ts'
import { errorOf, failure, success } from './conclude.ts'
import { runFanOut } from './fan-out.ts'
import type { Parents } from './parents.ts'

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
  parents: Parents
}

/** Runs the handler and says how the attempt ended. Never throws: whatever a handler does is an outcome. */
export async function runHandler(parts: HandlerParts, attempt: Attempt): Promise<Outcome> {
  const read = readInput(attempt)
  const input = read instanceof Promise ? await read : read
  if ('error' in input) return failure(attempt, input.error)
  const { stage, row } = attempt
  try {
    const ctx = contextOf(attempt, input.value, parts.reporter)
    if (row.is_part)
      return success(parts.config, attempt, await eachOf(stage).run(itemContextOf(parts, attempt, ctx), input.value))
    if (stage.run) return success(parts.config, attempt, await stage.run(ctx))
    return await runFanOut(parts, attempt, ctx)
  } catch (thrown) {
    // that our database was out of reach when an item asked for its parent is not the handler's fault
    if (row.is_part && thrown instanceof HoldfastError && isConnectionError(thrown)) return { move: 'release' }
    return failure(attempt, errorOf(attempt, thrown))
  }
}

/** What a handler is given. All of it is the object's own, so that a handler can take it apart or spread it into another. */
function contextOf(held: Attempt, input: unknown, reporter: Reporter): StageContext {
  const { row, job } = held
  const submittedAt = new Date(row.submittedAtMs)
  return {
    job: { id: held.fence.id, kind: row.kind, tenant: row.tenant, queue: job.queue, submittedAt },
    stage: held.stage.name,
    attempt: row.attempt,
    input,
    outputs: outputsOf(held),
    get signal() {
      return held.signal()
    },
    progress: (done, total, note) => reporter.progress(held, done, total, note),
    log: (message, data) => reporter.log(held, message, data),
  }
}

/** The same for an item, which can also ask for its job. Each has an input of its own to change. */
function itemContextOf({ parents }: HandlerParts, { row, job }: Attempt, ctx: StageContext): ItemContext {
  const parent = async () => {
    const { id, input: text } = await parents.of(row.barrierId as string)
    const value: unknown = JSON.parse(text)
    const read = job.input ? await fitted(job.input, value, job.kind) : { value }
    if ('error' in read) throw new HoldfastError('input_invalid', read.error.message)
    return { id: id as JobId, input: read.value }
  }
  return Object.assign(ctx, { parent })
}

function outputsOf({ row, job }: Attempt): Record<string, unknown> {
  if (row.stage === 0 || row.is_part) return {}
  const committed = row.outputs === null ? {} : JSON.parse(row.outputs)
  // a stage that returned nothing has no row; its output is null
  return Object.fromEntries(job.stages.slice(0, row.stage).map(({ name }) => [name, committed[name] ?? null]))
}

type Read = { value: unknown } | { error: JobError }

function readInput({ row, job, stage }: Attempt): Read | Promise<Read> {
  if (row.input === null) return invalid('The stored input of this job is missing.')
  const schema = row.is_part ? stage.item : job.input
  try {
    const value: unknown = JSON.parse(row.input)
    return schema ? fitted(schema, value, job.kind) : { value }
  } catch (thrown) {
    return unreadable(job.kind, thrown)
  }
}

async function fitted(schema: Schema, value: unknown, kind: string): Promise<Read> {
  try {
    const checked = await schema['~standard'].validate(value)
    if (!checked.issues) return { value: checked.value }
    return invalid(`The stored input does not fit kind ${kind}: ${checked.issues[0]?.message}.`)
  } catch (thrown) {
    return unreadable(kind, thrown)
  }
}

function unreadable(kind: string, thrown: unknown): Read {
  return invalid(`The stored input of kind ${kind} cannot be read: ${messageOf(thrown)}`)
}

function invalid(message: string): Read {
  return { error: { code: 'input_invalid', message } }
}
