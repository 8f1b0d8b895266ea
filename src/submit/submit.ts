import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { type Group, group, sizeOfBatch } from '../service/group.ts'
import { Apart } from '../store/apart.ts'
import type { Runner, Store } from '../store/store.ts'
import type { PreparedJob } from './prepare.ts'
import { keyHolders, submitJobs } from './submit.sql.ts'

/** What a submit answers: the job, and whether an earlier submit with the same key had made it already. */
export interface Submitted {
  id: JobId
  isNew: boolean
}

/** Makes those of many jobs that stand from here to there, at once; null if that can't be. */
export type MakeSome = (from: number, to: number) => PreparedJob[] | null

/** Many jobs that are still to be made: all before anything is written, or some while others are written. */
export interface Many {
  count: number
  all: () => Promise<PreparedJob[]>
  /** Null if their order matters, because they have keys, or if making them may take time. */
  some: MakeSome | null
}

/** Submits jobs; those submitted at the same time share a commit. */
export interface Submitter {
  submit(job: PreparedJob): Promise<Submitted>
  /** Submits many, all or none. */
  submitMany(many: Many): Promise<Submitted[]>
  /** Resolves when nothing is under way any more. */
  idle(): Promise<void>
}

const heavyBytes = 65_536

/** Makes a submitter on a store. */
export function makeSubmitter(store: Store, batchSize: number): Submitter {
  // strangers share a batch: what is wrong with one of them is told to that one alone, and a key that somebody holds keeps nobody else
  const apart = new Apart<PreparedJob, Answer>({ store, run: writeAll, nameOf, refused: refusalOf })
  const single: Group<PreparedJob, Answer> = group({
    most: batchSize,
    lanes: 2,
    weightOf,
    write: (jobs) => apart.write(jobs),
  })
  // one after the other and apart: whoever submits little must not wait for a statement that carries somebody's megabytes
  const heavy: Group<PreparedJob, Answer> = group({ most: 1, lanes: 1, write: (jobs) => apart.write(jobs) })
  return {
    async submit(job) {
      const answer = await (job.inputBytes > heavyBytes ? heavy : single).add(job)
      if (answer instanceof HoldfastError) throw answer
      return answer
    },
    async submitMany({ count, all, some }) {
      const answers = some && (await submitPiped(store, count, batchSize, some))
      if (answers) return answers
      const jobs = await all()
      const ordered = inKeyOrder(jobs)
      const written = await submitPiped(store, count, batchSize, (from, to) => ordered.slice(from, to))
      return inOrderOf(jobs, ordered, written as Submitted[])
    },
    idle: async () => void (await Promise.all([single.idle(), heavy.idle()])),
  }
}

/** Submits jobs inside a transaction that the caller owns: they exist if and only if it commits. */
export async function submitInSlices(runner: Runner, jobs: PreparedJob[], batchSize: number): Promise<Submitted[]> {
  const ordered = inKeyOrder(jobs)
  const answers: Submitted[] = []
  for (const slice of slicesOf(ordered, batchSize)) answers.push(...(await submitAll(runner, slice)))
  return inOrderOf(jobs, ordered, answers)
}

/**
 * Submits so many jobs in a transaction of our own: while the server writes one slice, the next is made. Answers null, and nothing is
 * written, if some can't be made at once: whoever waits for something must not do so while a transaction is open.
 */
async function submitPiped(
  store: Store,
  count: number,
  batchSize: number,
  make: MakeSome,
): Promise<Submitted[] | null> {
  const first = make(0, Math.min(count, batchSize))
  if (!first) return null
  const parts = slicesOf(first, batchSize)
  // one statement is a transaction of its own, but a taken key is told only after it, when the others would be in already
  if (count <= batchSize && parts.length === 1 && first.every(({ key }) => key === null)) return submitAll(store, first)
  return store
    .transaction(async (runner) => {
      const pipe = makePipe(runner)
      try {
        const slices = parts.map(pipe.write)
        for (let start = batchSize; start < count; start += batchSize) {
          const jobs = make(start, Math.min(count, start + batchSize))
          if (!jobs) throw new NotAtOnce()
          await slices.at(-2)
          slices.push(...slicesOf(jobs, batchSize).map(pipe.write))
        }
        return (await Promise.all(slices)).flat()
      } finally {
        await pipe.end()
      }
    })
    .catch((error) => (error instanceof NotAtOnce ? null : Promise.reject(error)))
}

/** Undoes a transaction whose jobs can't all be made while it is open. */
class NotAtOnce extends Error {}

const weightOf = ({ inputBytes }: PreparedJob) => inputBytes

/** These jobs in the same order, in slices that one statement can carry. */
function slicesOf(jobs: PreparedJob[], batchSize: number): PreparedJob[][] {
  const slices: PreparedJob[][] = []
  for (let start = 0; start < jobs.length; start += slices.at(-1)?.length as number)
    slices.push(jobs.slice(start, start + sizeOfBatch(jobs, start, batchSize, weightOf)))
  return slices
}

interface Pipe {
  write(slice: PreparedJob[]): Promise<Submitted[]>
  /** Resolves once nothing is under way; what was not begun by then never is. */
  end(): Promise<void>
}

/**
 * Writes slices one after the other: a connection carries one statement at a time, and a second one must not be left to the queue of its driver. The first
 * that fails is told; those behind it are not written, and nobody may be waiting for them.
 */
function makePipe(runner: Runner): Pipe {
  let last: Promise<unknown> = Promise.resolve()
  let isEnded = false
  return {
    write(slice) {
      const written = last.then(() => {
        // outside of its transaction it would be stored although the others are not
        if (isEnded) throw new Error('The transaction of this slice has ended.')
        return submitAll(runner, slice)
      })
      written.catch(() => {})
      last = written
      return written
    },
    async end() {
      isEnded = true
      await last.catch(() => {})
    },
  }
}

/** Keys are taken in one order over all slices, or two such transactions could wait for each other. */
function inKeyOrder(jobs: PreparedJob[]): PreparedJob[] {
  if (jobs.every(({ key }) => key === null)) return jobs
  return jobs.toSorted((a, b) => compare(a.tenant, b.tenant) || compare(a.key ?? '', b.key ?? ''))
}

function inOrderOf(jobs: PreparedJob[], ordered: PreparedJob[], answers: Submitted[]): Submitted[] {
  if (jobs === ordered) return answers
  const byJob = new Map(ordered.map((job, index) => [job, answers[index] as Submitted]))
  return jobs.map((job) => byJob.get(job) as Submitted)
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

type Answer = Submitted | HoldfastError

/** Jobs with the same key wait for each other; one without a key waits for nobody. */
function nameOf({ id, tenant, key }: PreparedJob): string {
  return key === null ? id : `${tenant}\n${key}`
}

/** Whoever submits alone hears the database itself. */
function refusalOf(error: unknown, count: number): HoldfastError {
  if (count === 1) throw error
  return asHoldfastError(error)
}

function asHoldfastError(error: unknown): HoldfastError {
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('not_storable', 'Postgres refused this job.', { cause: error })
}

async function writeAll(runner: Runner, jobs: PreparedJob[]): Promise<(Submitted | HoldfastError)[]> {
  if (jobs.length === 0) return []
  const [written] = await runner.run(submitJobs, { jobs })
  if (written?.count === jobs.length) return jobs.map(({ id }) => ({ id, isNew: true }))
  const accepted = new Set<string>(written?.ids?.slice(1, -1).split(','))
  const taken = jobs.filter((job) => !accepted.has(job.id))
  const holders = await holdersOf(runner, taken)
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
