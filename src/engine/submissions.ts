import type { AnyJob, InputOf } from '../job/define.ts'
import type { JobId } from '../job/id.ts'
import { known } from '../job/validate-argument.ts'
import type { Queryable } from '../postgres/store.ts'
import { runnerInside } from '../postgres/transaction.ts'
import type { Results } from '../reads/results.ts'
import type { PreparedJob, SubmitOptions } from '../submit/prepare.ts'
import { prepareThrough } from '../submit/prepare-through.ts'
import { type MakeSome, makeSubmitter, type Submitted, type Submitter, submitInSlices } from '../submit/submit.ts'
import { type Handle, makeHandle } from './handle.ts'
import type { EngineParts } from './parts.ts'
import { inSubmit, type Trace } from './span.ts'

/** Options of one submit, including the transaction to use. */
export interface SubmitHow extends SubmitOptions {
  /** A `pg` client inside a transaction, fromKysely(trx) or fromDrizzle(tx). The job exists if and only if the transaction commits. */
  tx?: Queryable
}

/** One of many jobs to submit. */
type JobToSubmit = { job: AnyJob; input: unknown } & SubmitOptions

type Parts = Pick<EngineParts, 'store' | 'config' | 'deliverer' | 'flow' | 'metrics'>

/** Whether the order of the jobs matters, or whether preparing this one takes a query. */
const isOrdered = ({ key, unique, webhook }: SubmitOptions) =>
  key !== undefined || unique !== undefined || webhook !== undefined

/** Prepares jobs and submits them. */
export class Submissions {
  readonly #parts: Parts
  readonly #results: Results
  readonly #submitter: Submitter

  constructor(parts: Parts, results: Results) {
    this.#parts = parts
    this.#results = results
    this.#submitter = makeSubmitter(parts.store, parts.config.batchSize)
  }

  submit<J extends AnyJob>(job: J, input: InputOf<J>, { tx, ...how }: SubmitHow = {}): Promise<Handle<J>> {
    return inSubmit(job, how.traceparent, async (trace) => {
      const prepared = await this.#prepare(job, input, how, trace)
      const [submitted] = tx
        ? await submitInSlices(await runnerInside(tx), [prepared], 1)
        : [await this.#submitter.submit(prepared)]
      this.#count(how, submitted as Submitted)
      return this.#handleOf<J>(submitted as Submitted)
    })
  }

  async submitMixed(jobs: readonly JobToSubmit[], tx?: Queryable): Promise<Handle<AnyJob>[]> {
    const [first] = jobs
    if (!first) return []
    return inSubmit(first.job, first.traceparent, async (trace) => {
      const all = () => this.#prepareAll(jobs, trace)
      const submitted = tx
        ? await submitInSlices(await runnerInside(tx), await all(), this.#parts.config.batchSize)
        : await this.#submitter.submitMany({ count: jobs.length, all, some: this.#preparingSome(jobs, trace) })
      for (const [index, one] of jobs.entries()) this.#count(one, submitted[index] as Submitted)
      return submitted.map((one) => this.#handleOf<AnyJob>(one))
    })
  }

  /** The handle of a job that exists. */
  handle<J extends AnyJob>(id: JobId): Handle<J> {
    return this.#handleOf({ id, isNew: false, outcome: 'kept' })
  }

  /** Resolves when no submit is under way. */
  idle(): Promise<void> {
    return this.#submitter.idle()
  }

  #handleOf<J extends AnyJob>(submitted: Submitted): Handle<J> {
    return makeHandle<J>(submitted, this.#results)
  }

  #count({ unique }: SubmitOptions, { outcome }: Submitted): void {
    if (unique) this.#parts.metrics.add('holdfast_unique_submits_total', { outcome })
  }

  #prepare(job: AnyJob, input: unknown, how: SubmitOptions, trace: Trace): PreparedJob | Promise<PreparedJob> {
    const options = { ...how, ...trace(how) }
    const given = { job: known(job), input, options }
    if (how.webhook === undefined) return prepareThrough(this.#parts, given)
    return this.#parts.deliverer.forJob(how).then((webhook) => prepareThrough(this.#parts, { ...given, webhook }))
  }

  async #prepareAll(jobs: readonly JobToSubmit[], trace: Trace): Promise<PreparedJob[]> {
    const prepared: PreparedJob[] = []
    for (const { job, input, ...how } of jobs) {
      const one = this.#prepare(job, input, how, trace)
      prepared.push(one instanceof Promise ? await one : one)
    }
    return prepared
  }

  /** Prepares jobs as they are needed; null if their order matters, or if preparing them takes time or a query. */
  #preparingSome(jobs: readonly JobToSubmit[], trace: Trace): MakeSome | null {
    if (!this.#parts.flow.isEmpty || jobs.some(isOrdered)) return null
    return (from, to) => {
      const prepared: PreparedJob[] = []
      for (const { job, input, ...how } of jobs.slice(from, to)) {
        const one = this.#prepare(job, input, how, trace)
        if (one instanceof Promise) {
          one.catch(() => {}) // it is prepared again, together with all others
          return null
        }
        prepared.push(one)
      }
      return prepared
    }
  }
}
