import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Schema, StageContext } from '../job/define.ts'
import type { ItemContext } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import { isNobodysFault } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import { type Attempt, eachOf } from './attempt.ts'
import { failure, success, thrownBy } from './conclude.ts'
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

/** Runs the handler and resolves with the attempt's outcome. Never rejects: whatever a handler does is an outcome. */
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
    // it is not the handler's fault if our database was unreachable or full when an item asked for its parent
    if (row.is_part && thrown instanceof HoldfastError && isNobodysFault(thrown)) return { move: 'release' }
    return thrownBy(attempt, thrown)
  }
}

/** What a handler gets. All properties are own properties, so that a handler can destructure or spread it. */
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

/** The same for an item, which can also ask for its parent job. Each item gets its own copy of the parent's input. */
function itemContextOf({ parents }: HandlerParts, { row, job }: Attempt, ctx: StageContext): ItemContext {
  const parent = async () => {
    const { id, input: text } = await unlessAborted(ctx.signal, parents.of(row.barrierId as string))
    const value: unknown = JSON.parse(text)
    const read = job.input ? await fitted(job.input, value, job.kind) : { value }
    if ('error' in read) throw new HoldfastError('input_invalid', read.error.message)
    return { id: id as JobId, input: read.value }
  }
  return Object.assign(ctx, { parent })
}

/** A handler must notice that its attempt was aborted, even if the database doesn't answer. */
function unlessAborted<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
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

/** Cleans the message: it comes from a schema library and may quote half a character of the input. */
function invalid(message: string): Read {
  return { error: { code: 'input_invalid', message: messageOf(message) } }
}
