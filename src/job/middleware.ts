import { HoldfastError } from '../errors/errors.ts'
import { type Known, unknownOption } from '../errors/options.ts'
import type { JobId } from './id.ts'

/** A job that is about to be stored, or an item of a fan-out. */
export interface SubmittedJob {
  readonly kind: string
  readonly tenant: string
  /** Whether it is an item of a fan-out. */
  readonly isItem: boolean
  /** What is stored. The caller's input has been checked against the schema by now; what replaces it is not checked again. */
  readonly input: unknown
}

/** An attempt that is about to run. */
export interface RunningAttempt {
  readonly job: { readonly id: JobId; readonly kind: string; readonly tenant: string; readonly queue: string }
  readonly stage: string
  readonly attempt: number
  /** The stored input. What replaces it is checked against the schema, and is what the handler gets. */
  readonly input: unknown
  /** The stored outputs of the earlier stages, by name. */
  readonly outputs: Readonly<Record<string, unknown>>
  /** Is applied to whatever else the handler reads: the input of its parent, and the items and results of a join. */
  readonly reads: (stored: unknown) => unknown
}

/** A signal that is about to be stored. */
export interface SentSignal {
  readonly id: JobId
  readonly name: string
  /** What is stored. */
  readonly payload: unknown
}

/** Functions around every job. Each gets the next one, and decides what to pass on to it. The first middleware is the outermost. */
export interface Middleware {
  /** Around the preparation of every submit, and of every item. It must call `next` once; what it returns is ignored. An error refuses the submit. */
  submit?(next: (job: SubmittedJob) => Promise<void>, job: SubmittedJob): unknown
  /** Around every run of a handler. It returns the output, which is stored. An error counts as one of the handler. */
  run?(next: (attempt: RunningAttempt) => Promise<unknown>, attempt: RunningAttempt): unknown
  /** Around every signal, as `submit`. */
  signal?(next: (signal: SentSignal) => Promise<void>, signal: SentSignal): unknown
}

/** All middleware of a process, as one function for each purpose. */
export interface Flow {
  /** Whether there is no middleware. */
  readonly isEmpty: boolean
  /** The input to store. */
  submit(job: SubmittedJob): Promise<unknown>
  /** Runs a handler, and returns the output to store. */
  run(attempt: RunningAttempt, handler: (attempt: RunningAttempt) => Promise<unknown>): Promise<unknown>
  /** The payload to store. */
  signal(signal: SentSignal): Promise<unknown>
}

const known: Known<Middleware> = { submit: true, run: true, signal: true }

/** Makes one of many middleware. Throws if one of them is invalid. */
export function makeFlow(middleware: readonly Middleware[]): Flow {
  checkMiddleware(middleware)
  return {
    isEmpty: middleware.length === 0,
    submit: async (job) => (await passed('submit', middleware, job)).input,
    signal: async (signal) => (await passed('signal', middleware, signal)).payload,
    run: (attempt, handler) => around('run', middleware, attempt, handler),
  }
}

/** A flow without middleware. */
export const emptyFlow: Flow = makeFlow([])

type Around<T> = (next: (value: T) => Promise<unknown>, value: T) => unknown

function around<T>(
  name: keyof Middleware,
  middleware: readonly Middleware[],
  value: T,
  innermost: (value: T) => Promise<unknown>,
): Promise<unknown> {
  const chain = middleware.reduceRight<(value: T) => Promise<unknown>>((next, one) => {
    const hook = one[name] as Around<T> | undefined
    return hook ? async (given) => hook.call(one, next, given) : next
  }, innermost)
  return chain(value)
}

/** What reaches the innermost function. It is a mistake if nothing does, or if something does twice. */
async function passed<T>(name: 'submit' | 'signal', middleware: readonly Middleware[], value: T): Promise<T> {
  const got: T[] = []
  await around(name, middleware, value, async (given) => void got.push(given))
  const [only] = got
  if (only !== undefined && got.length === 1) return only
  throw new HoldfastError(
    'middleware_invalid',
    `The ${name} function of a middleware called next ${got.length === 0 ? 'never' : `${got.length} times`}; it must call it once, or throw to refuse the ${name}.`,
  )
}

function checkMiddleware(middleware: readonly Middleware[]): void {
  if (!Array.isArray(middleware)) refuse('must be a list')
  for (const [index, one] of middleware.entries()) {
    if (typeof one !== 'object' || one === null) refuse(`[${index}] must be an object with submit, run or signal`)
    // a class has its functions on its prototype
    const unknown = unknownOption(one, known)
    if (unknown) refuse(`[${index}] has no function ${unknown}`)
    for (const name of Object.keys(known) as (keyof Middleware)[])
      if (one[name] !== undefined && typeof one[name] !== 'function') refuse(`[${index}].${name} must be a function`)
  }
}

function refuse(problem: string): never {
  throw new HoldfastError('middleware_invalid', `The option middleware${problem.startsWith('[') ? '' : ' '}${problem}.`)
}
