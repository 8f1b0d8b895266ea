import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Schema, StageContext } from '../job/define.ts'
import type { ItemContext } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { Flow, RunningAttempt } from '../job/middleware.ts'
import type { Wait } from '../job/wait.ts'
import type { Store } from '../postgres/store.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import { type Attempt, eachOf } from './attempt.ts'
import { errorOf, failure, isBlameless, success, thrownBy } from './conclude.ts'
import { type Ran, runFanOut } from './fan-out.ts'
import type { Parents } from './parents.ts'
import { snooze, unlessSnoozed } from './snooze.ts'
import { waitForSignal } from './wait.ts'

/** Where a handler's reports go. */
export interface Reporter {
  progress(attempt: Attempt, done: number, total: number | undefined, note: string | undefined): void
  log(attempt: Attempt, message: string, data: Record<string, unknown> | undefined): void
}

/** What it takes to run a handler. */
export interface HandlerParts {
  config: Config
  store: Store
  flow: Flow
  reporter: Reporter
  parents: Parents
}

/** Runs the handler and resolves with the attempt's outcome. Never rejects: whatever a handler does is an outcome. */
export async function runHandler(parts: HandlerParts, attempt: Attempt): Promise<Outcome> {
  if (attempt.stage.wait && !attempt.row.is_part) return runWait(parts, attempt, attempt.stage.wait)
  return unlessSnoozed(attempt, await runStage(parts, attempt))
}

/** Runs a stage that waits for a signal. There is no handler: what was sent is the output. */
async function runWait({ store, config }: HandlerParts, attempt: Attempt, wait: Wait): Promise<Outcome> {
  const { fence, row, stage } = attempt
  try {
    const waited = await waitForSignal(store, { fence, stage: row.stage, stageName: stage.name, wait })
    if ('outcome' in waited) return waited.outcome
    if ('error' in waited) return failure(attempt, waited.error)
    return success(config, attempt, waited.output === null ? null : JSON.parse(waited.output))
  } catch (thrown) {
    // nobody is at fault if our database was unreachable or full, or a row locked
    if (isBlameless(thrown)) return { move: 'release' }
    return failure(attempt, errorOf(attempt, thrown))
  }
}

async function runStage(parts: HandlerParts, attempt: Attempt): Promise<Outcome> {
  const hasMiddleware = !parts.flow.isEmpty
  const read = readInput(attempt, hasMiddleware ? undefined : schemaOf(attempt))
  const input = read instanceof Promise ? await read : read
  if ('error' in input) return failure(attempt, input.error)
  try {
    const stored: Given = { input: input.value, outputs: outputsOf(attempt), reads: asStored }
    const ran = await (hasMiddleware ? runThrough(parts, attempt, stored) : perform(parts, attempt, stored))
    if ('outcome' in ran) return ran.outcome
    return success(parts.config, attempt, ran.output, ran.hasFailedItems)
  } catch (thrown) {
    // it is not the handler's fault if our database was unreachable or full when an item asked for its parent
    if (attempt.row.is_part && isBlameless(thrown)) return { move: 'release' }
    return thrownBy(attempt, thrown)
  }
}

/** What a handler gets to see of what is stored. `reads` is applied to what it reads later. */
type Given = Pick<RunningAttempt, 'input' | 'outputs' | 'reads'>

const asStored = (value: unknown) => value

/** Runs the stage. */
async function perform(parts: HandlerParts, attempt: Attempt, given: Given): Promise<Ran> {
  const { row, stage } = attempt
  const ctx = contextOf(attempt, given, parts.reporter)
  if (row.is_part) return { output: await eachOf(stage).run(itemContextOf(parts, attempt, ctx, given), given.input) }
  if (stage.run) return { output: await stage.run(ctx) }
  return runFanOut(parts, attempt, ctx, given.reads)
}

/** Runs the stage inside the middleware, which may replace what the handler gets and what is stored. */
async function runThrough(parts: HandlerParts, attempt: Attempt, stored: Given): Promise<Ran> {
  const { fence, row, job, stage } = attempt
  const about = { id: fence.id, kind: row.kind, tenant: row.tenant, queue: job.queue }
  let ran: Ran | undefined
  const output = await parts.flow.run(
    { job: about, stage: stage.name, attempt: row.attempt, ...stored },
    async (given) => {
      const schema = schemaOf(attempt)
      const read = schema ? await fitted(schema, given.input, job.kind) : { value: given.input }
      if ('error' in read) throw new HoldfastError('input_invalid', read.error.message)
      ran = await perform(parts, attempt, { ...given, input: read.value })
      return 'outcome' in ran ? undefined : ran.output
    },
  )
  if (ran && 'outcome' in ran) return ran
  return { output, hasFailedItems: ran?.hasFailedItems === true }
}

/** What a handler gets. All properties are own properties, so that a handler can destructure or spread it. */
function contextOf(held: Attempt, { input, outputs }: Given, reporter: Reporter): StageContext {
  const { row, job } = held
  const submittedAt = new Date(row.submittedAtMs)
  return {
    job: { id: held.fence.id, kind: row.kind, tenant: row.tenant, queue: job.queue, submittedAt },
    stage: held.stage.name,
    attempt: row.attempt,
    input,
    outputs,
    get signal() {
      return held.signal()
    },
    progress: (done, total, note) => reporter.progress(held, done, total, note),
    log: (message, data) => reporter.log(held, message, data),
    snooze: (ms) => snooze(held, ms),
    sleep: (ms) => snooze(held, ms),
  }
}

/** The same for an item, which can also ask for its parent job. Each item gets its own copy of the parent's input. */
function itemContextOf(
  { parents }: HandlerParts,
  { row, job }: Attempt,
  ctx: StageContext,
  { reads }: Given,
): ItemContext {
  const parent = async () => {
    const { id, input: text } = await unlessAborted(ctx.signal, parents.of(row.barrierId as string))
    const value: unknown = await reads(JSON.parse(text))
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

function schemaOf({ row, job, stage }: Attempt): Schema | undefined {
  return row.is_part ? stage.item : job.input
}

function readInput({ row, job }: Attempt, schema: Schema | undefined): Read | Promise<Read> {
  if (row.input === null) return invalid('The stored input of this job is missing.')
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
    return invalid(`The stored input does not match the schema of kind ${kind}: ${checked.issues[0]?.message}.`)
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
