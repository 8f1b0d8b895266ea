import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { type Group, group } from '../service/group.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Runner, Store } from '../store/store.ts'
import type { PreparedJob } from './prepare.ts'
import { keyHolders, submitJobs } from './submit.sql.ts'

/** What a submit answers: the job, and whether an earlier submit with the same key had made it already. */
export interface Submitted {
  id: JobId
  isNew: boolean
}

/** Submits jobs; those submitted at the same time share a commit. */
export interface Submitter {
  submit(job: PreparedJob): Promise<Submitted>
  submitMany(jobs: PreparedJob[]): Promise<Submitted[]>
  /** Resolves when nothing is under way any more. */
  idle(): Promise<void>
}

/** Makes a submitter on a store. */
export function makeSubmitter(store: Store, batchSize: number): Submitter {
  const single: Group<PreparedJob, Submitted | HoldfastError> = group({
    most: batchSize,
    lanes: 2,
    write: (jobs) => writeApart(store, jobs),
  })
  return {
    async submit(job) {
      const answer = await single.add(job)
      if (answer instanceof HoldfastError) throw answer
      return answer
    },
    // one statement is a transaction of its own, but a taken key is told only after it, when the others would be in already
    submitMany: (jobs) =>
      jobs.length <= batchSize && jobs.every(({ key }) => key === null)
        ? submitAll(store, jobs)
        : store.transaction((runner) => submitInSlices(runner, jobs, batchSize)),
    idle: () => single.idle(),
  }
}

/** Submits jobs inside a transaction that the caller owns: they exist if and only if it commits. */
export async function submitInSlices(runner: Runner, jobs: PreparedJob[], batchSize: number): Promise<Submitted[]> {
  // keys are taken in one order over all slices, or two such transactions could wait for each other
  const ordered = jobs.toSorted((a, b) => compare(a.tenant, b.tenant) || compare(a.key ?? '', b.key ?? ''))
  const answers = new Map<PreparedJob, Submitted>()
  for (let start = 0; start < ordered.length; start += batchSize) {
    const slice = ordered.slice(start, start + batchSize)
    const submitted = await submitAll(runner, slice)
    for (const [index, job] of slice.entries()) answers.set(job, submitted[index] as Submitted)
  }
  return jobs.map((job) => answers.get(job) as Submitted)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Submits all of these jobs in one statement, or none of them. */
async function submitAll(runner: Runner, jobs: PreparedJob[]): Promise<Submitted[]> {
  return (await writeAll(runner, jobs)).map((answer) => {
    if (answer instanceof HoldfastError) throw answer
    return answer
  })
}

/** Strangers share this batch: what is wrong with one of them is told to that one alone. */
async function writeApart(store: Store, jobs: PreparedJob[]): Promise<(Submitted | HoldfastError)[]> {
  try {
    return await writeAll(store, jobs)
  } catch (error) {
    if (jobs.length === 1 || isConnectionError(error)) throw error
    const answers: (Submitted | HoldfastError)[] = []
    for (const job of jobs) answers.push(...(await writeApart(store, [job]).catch((alone) => [asHoldfastError(alone)])))
    return answers
  }
}

function asHoldfastError(error: unknown): HoldfastError {
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('not_storable', 'Postgres refused this job.', { cause: error })
}

async function writeAll(runner: Runner, jobs: PreparedJob[]): Promise<(Submitted | HoldfastError)[]> {
  if (jobs.length === 0) return []
  const accepted = new Set((await runner.run(submitJobs, { jobs })).map((row) => row.id))
  const taken = jobs.filter((job) => !accepted.has(job.id))
  const holders = taken.length === 0 ? new Map<string, Holder>() : await holdersOf(runner, taken)
  return jobs.map((job) => (accepted.has(job.id) ? { id: job.id, isNew: true } : answerTaken(job, holders)))
}

interface Holder {
  job_id: string
  fingerprint: string
}

async function holdersOf(runner: Runner, taken: PreparedJob[]): Promise<Map<string, Holder>> {
  const rows = await runner.run(keyHolders, { keys: taken.map(({ tenant, key }) => ({ tenant, key: key as string })) })
  return new Map(rows.map((row) => [`${row.tenant}\n${row.key}`, row]))
}

function answerTaken(job: PreparedJob, holders: Map<string, Holder>): Submitted | HoldfastError {
  const holder = holders.get(`${job.tenant}\n${job.key}`)
  if (!holder)
    return new HoldfastError(
      'key_conflict',
      `The key ${JSON.stringify(job.key)} was taken by a job that was removed meanwhile; submit again.`,
    )
  if (holder.fingerprint === job.fingerprint) return { id: holder.job_id as JobId, isNew: false }
  return new HoldfastError(
    'key_conflict',
    `The key ${JSON.stringify(job.key)} was used before with another kind or input (job ${holder.job_id}); use a fresh key for another job.`,
  )
}
