import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError } from '../errors/errors.ts'
import type { FanOut } from './fan-out.ts'
import type { JobId } from './id.ts'
import { type Keep, type KeptMs, keptMsOf } from './keep.ts'
import { optionProblem } from './known-options.ts'
import { type KindLimit, kindLimitProblem } from './limit.ts'
import type { ScheduleDeclaration } from './schedule.ts'
import type { Stored } from './stored.ts'
import { definitionProblem } from './validate.ts'
import type { Waits } from './wait.ts'

export { isName, isPriority, priorities } from './names.ts'
export { isSuspect, suspectCrashes } from './suspect.ts'

/** A schema of any library that implements Standard Schema: Zod, Valibot, ArkType and others. */
export type Schema<In = unknown, Out = unknown> = StandardSchemaV1<In, Out>

/** Why a handler's signal fired. */
export type AbortReason = 'timeout' | 'cancelled' | 'lease_lost' | 'shutdown'

/** The context that a handler receives. */
export interface StageContext<Input = unknown, Outputs = Record<string, unknown>> {
  /** The job of this attempt. */
  readonly job: {
    readonly id: JobId
    readonly kind: string
    readonly tenant: string
    readonly queue: string
    readonly submittedAt: Date
  }
  /** The stage that runs. */
  readonly stage: string
  /** The number of this attempt. It only grows, and fences every write: pass it on to systems that can check it. */
  readonly attempt: number
  /** What was submitted, as the schema returned it. */
  readonly input: Input
  /** What the earlier stages returned. */
  readonly outputs: Outputs
  /** Fires on timeout, cancel, lost lease and shutdown; `signal.reason` is an AttemptAborted that says which. */
  readonly signal: AbortSignal
  /** Reports the progress of this attempt. This is cheap: reports are batched, and the last one wins. */
  progress(done: number, total?: number, note?: string): void
  /** Writes a line into the job's timeline, fenced like every write. */
  log(message: string, data?: Record<string, unknown>): void
  /**
   * Gives the attempt back for this many milliseconds, by the database's clock. No worker is held meanwhile, and it costs no retry. Ends the
   * handler by throwing; the stage then runs again from its start.
   */
  snooze(ms: number): never
  /** The same as `snooze`. */
  sleep(ms: number): never
}

/** How long to wait before the next attempt: base × factor^(failures − 1), at most max, with jitter. */
export interface Backoff {
  /** The wait after the first failure. Default: the `backoffBaseMs` setting. */
  baseMs?: number
  /** How much longer each wait is than the one before. Default: 2. */
  factor?: number
  /** The longest wait. Default: the `backoffMaxMs` setting. */
  maxMs?: number
}

interface StageRules<Name extends string, Optional extends boolean> {
  /** The name of the stage; its output is stored under it. */
  readonly name: Name
  /** If an optional stage fails permanently, the job ends as `partial` and earlier outputs stay readable. */
  readonly optional?: Optional
  /** How many failures are retried. Default: the `retries` setting. */
  readonly retries?: number
  /** How long one attempt may take. Default: the `jobTimeoutMs` setting. */
  readonly timeoutMs?: number
  /** How long to wait before a retry. */
  readonly backoff?: Backoff
}

interface Running<Input, Earlier, Output> {
  /** The handler. It may run more than once, but its return value is committed only once. */
  readonly run: (ctx: StageContext<Input, Earlier>) => Output | Promise<Output>
}

type Without<T> = { readonly [K in keyof T]?: undefined }

type NoFanOut = Without<FanOut<never, never, never, never, never>>

/** One durable step of a kind: it runs, fans out over items and joins them, or waits for a signal. */
export type Stage<
  Name extends string,
  Input,
  Earlier,
  Output,
  Optional extends boolean = boolean,
  Item = unknown,
  Part = unknown,
> = StageRules<Name, Optional> &
  (
    | (Running<Input, Earlier, Output> & NoFanOut & Without<Waits>)
    | (FanOut<Input, Earlier, Output, Item, Part> & Without<Running<never, never, never>> & Without<Waits>)
    | (Waits & NoFanOut & Without<Running<never, never, never>>)
  )

/** A stage of any kind. */
// biome-ignore lint/suspicious/noExplicitAny: a handler takes its own context; only its kind knows which
export interface AnyStage extends StageRules<string, boolean>, Partial<FanOut<any, any, unknown, any, any>> {
  /** What it waits for, if it waits for a signal. */
  readonly wait?: Waits['wait']
  /** The handler, if the stage neither fans out nor waits. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly run?: Running<any, any, unknown>['run']
}

/** Whether a job may end as partial: never (false), if an optional stage fails (true), or also if items fail ('items'). */
export type Partly = boolean | 'items'

/** A kind of job, as `defineJob` returns it. The type parameters are those of its input and outputs. */
export interface JobDefinition<
  Kind extends string = string,
  Input = never,
  Outputs = unknown,
  Output = unknown,
  CanBePartial extends Partly = Partly,
> {
  readonly kind: Kind
  readonly queue: string
  readonly priority: number
  readonly crashBudget: number | undefined
  /** How long its jobs are kept after they end, in milliseconds, by state. */
  readonly keep?: KeptMs | undefined
  /** How many of its jobs may run at the same time, and how often. */
  readonly limit?: KindLimit<never> | undefined
  readonly input: Schema | undefined
  /** The schedules that submit its jobs. */
  readonly schedule?: ScheduleDeclaration | readonly ScheduleDeclaration[] | undefined
  readonly stages: readonly AnyStage[]
  /** Only carries types. */
  readonly types?: { input: (input: Input) => void; outputs: Outputs; output: Output; canBePartial: CanBePartial }
}

/** A kind with any types. */
export type AnyJob = JobDefinition<string, never, unknown, unknown, Partly>

/** The input of a kind. */
export type InputOf<J> = J extends { types?: { input: (input: infer I) => void } } ? I : never
/** The outputs of a kind, by stage. */
export type OutputsOf<J> = J extends { types?: { outputs: infer O } } ? O : never
/** The output of the last stage of a kind. */
export type OutputOf<J> = J extends { types?: { output: infer O } } ? O : never
/** Whether a kind has an optional stage, or one that fans out. */
export type CanBePartial<J> = J extends { types?: { canBePartial: infer C } } ? C : never

/** A kind with a single stage. */
type Alone<Input, Output> = Omit<StageRules<'run', boolean>, 'name' | 'optional'> &
  Running<Input, unknown, Output> & { readonly stages?: undefined }

/** The options of a kind, apart from its stages. */
export interface Common<S extends Schema> {
  /** The schema of the input. It is checked at submit, and again before the handler runs. */
  input?: S
  /** The queue of its jobs. Default: `default`. */
  queue?: string
  /** 1 (first) to 4 (last). Default: 2. */
  priority?: number
  /** How many workers a job may lose before it is quarantined. Default: the `crashBudget` setting. */
  crashBudget?: number
  /**
   * How long its jobs are kept after they end: `'1d'`, or by state: `{ succeeded: '1d', failed: '90d' }`. Milliseconds, or a string with a unit.
   * 0: they are removed once they end. Default: the settings `keepMs` and `keepFailedMs`.
   */
  keep?: Keep
  /** How many of its jobs may run at the same time, and how many may start in a span of time; for each key, if it has one. */
  limit?: KindLimit<StandardSchemaV1.InferInput<S>>
  /**
   * A schedule that submits its jobs, or several, each with a name. A worker that starts writes it, unless the declaration is the one that
   * was written last: so changes at run time survive deploys.
   */
  schedule?: ScheduleDeclaration<In<S>> | readonly ScheduleDeclaration<In<S>>[]
}

type In<S extends Schema> = StandardSchemaV1.InferInput<S>
type Out<S extends Schema> = StandardSchemaV1.InferOutput<S>
type Of<Name extends string, Output> = [Name] extends [never] ? unknown : { readonly [N in Name]: Stored<Output> }
type Known<T> = [T] extends [never] ? false : true
type Last<Names extends unknown[], Values extends unknown[]> = Names extends [infer N, ...infer NS]
  ? Values extends [infer V, ...infer VS]
    ? Known<N> extends true
      ? V
      : Last<NS, VS>
    : never
  : never

/**
 * Defines a kind: with one stage (`run`), or with up to six (`stages`). Each stage is durable: its output is committed before the next one
 * begins. There is one signature for both, so that compiler errors point at the wrong field and not at the call.
 */
export function defineJob<
  K extends string,
  S extends Schema,
  N1 extends string = 'run',
  O1 = unknown,
  Q1 extends boolean = false,
  I1 = never,
  R1 = unknown,
  N2 extends string = never,
  O2 = unknown,
  Q2 extends boolean = false,
  I2 = never,
  R2 = unknown,
  N3 extends string = never,
  O3 = unknown,
  Q3 extends boolean = false,
  I3 = never,
  R3 = unknown,
  N4 extends string = never,
  O4 = unknown,
  Q4 extends boolean = false,
  I4 = never,
  R4 = unknown,
  N5 extends string = never,
  O5 = unknown,
  Q5 extends boolean = false,
  I5 = never,
  R5 = unknown,
  N6 extends string = never,
  O6 = unknown,
  Q6 extends boolean = false,
  I6 = never,
  R6 = unknown,
>(
  kind: K,
  definition: Common<S> &
    (
      | Alone<Out<S>, O1>
      | {
          run?: undefined
          /** One to six stages, in the order in which they run. */
          stages: readonly [
            Stage<N1, Out<S>, unknown, O1, Q1, I1, R1>,
            Stage<N2, Out<S>, Of<N1, O1>, O2, Q2, I2, R2>?,
            Stage<N3, Out<S>, Of<N1, O1> & Of<N2, O2>, O3, Q3, I3, R3>?,
            Stage<N4, Out<S>, Of<N1, O1> & Of<N2, O2> & Of<N3, O3>, O4, Q4, I4, R4>?,
            Stage<N5, Out<S>, Of<N1, O1> & Of<N2, O2> & Of<N3, O3> & Of<N4, O4>, O5, Q5, I5, R5>?,
            Stage<N6, Out<S>, Of<N1, O1> & Of<N2, O2> & Of<N3, O3> & Of<N4, O4> & Of<N5, O5>, O6, Q6, I6, R6>?,
          ]
        }
    ),
): JobDefinition<
  K,
  In<S>,
  Of<N1, O1> & Of<N2, O2> & Of<N3, O3> & Of<N4, O4> & Of<N5, O5> & Of<N6, O6>,
  Stored<Last<[N6, N5, N4, N3, N2, N1], [O6, O5, O4, O3, O2, O1]>>,
  [I1 | I2 | I3 | I4 | I5 | I6] extends [never] ? (Q1 | Q2 | Q3 | Q4 | Q5 | Q6 extends false ? false : true) : 'items'
>
export function defineJob(
  kind: string,
  definition: Common<Schema> & Partial<AnyStage> & { stages?: readonly (AnyStage | undefined)[] | undefined },
): AnyJob {
  const {
    input,
    queue = 'default',
    priority = 2,
    crashBudget,
    keep,
    limit,
    schedule,
    stages: given,
    ...alone
  } = definition
  const stages = given ? given.filter((stage) => stage !== undefined) : [{ ...alone, name: 'run' } as AnyStage]
  const kept = keptMsOf(keep)
  const rules = {
    ...(typeof kept === 'object' && { keep: kept }),
    ...(limit !== undefined && { limit }),
    ...(schedule !== undefined && { schedule }),
  }
  const job = { kind, queue, priority, crashBudget, ...rules, input, stages, [brand]: true }
  const problem =
    definitionProblem(job) ??
    (typeof kept === 'string' ? kept : undefined) ??
    kindLimitProblem(limit) ??
    optionProblem(definition, stages)
  if (problem) throw new HoldfastError('kind_invalid', `Kind ${JSON.stringify(kind)} ${problem}`)
  return job
}

/** Marks kinds. A global symbol, because the module that defines the jobs may use another copy of Holdfast. */
const brand = Symbol.for('holdfast.job')

/** Whether a value was returned by `defineJob`, of this copy of Holdfast or another. */
export function isJob(value: unknown): value is AnyJob {
  return typeof value === 'object' && value !== null && brand in value
}
