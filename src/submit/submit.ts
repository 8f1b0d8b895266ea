import { setImmediate as immediate } from 'node:timers/promises'
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { SubmitOutcome } from '../job/unique.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { type Group, group, sizeOfBatch } from '../service/group.ts'
import { Apart } from '../transitions/contended-writes.ts'
import type { PreparedJob } from './prepare.ts'
import { keyHolders, submitJobs } from './submit.sql.ts'
import { makeUniqueSubmitter, roundsOf, writeUnique } from './unique.ts'

/** The result of a submit. `isNew` is false if the job existed before: it has the same key, or holds the same unique key. */
export interface Submitted {
  id: JobId
  isNew: boolean
  outcome: SubmitOutcome
}

/** Prepares the jobs with these indexes synchronously; null if that isn't possible. */
export type MakeSome = (from: number, to: number) => PreparedJob[] | null

/** Many jobs to prepare: all before anything is written, or some while others are being written. */
export interface Many {
  count: number
  all: () => Promise<PreparedJob[]>
  /** Null if their order matters, because they have keys, or if preparing them may be asynchronous. */
  some: MakeSome | null
}

/** Submits jobs. Concurrent submits share a commit. */
export interface Submitter {
  submit(job: PreparedJob): Promise<Submitted>
  /** Submits many, all or none. */
  submitMany(many: Many): Promise<Submitted[]>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

const heavyBytes = 65_536

/** Makes a submitter. */
export function makeSubmitter(store: Store, batchSize: number): Submitter {
  // unrelated submits share a batch: an error of one, or a key that is locked, must not affect the others
  const apart = new Apart<PreparedJob, Answer>({ store, run: writeAll, nameOf, refused: refusalOf })
  const single: Group<PreparedJob, Answer> = group({
    most: batchSize,
    lanes: 2,
    weightOf,
    write: (jobs) => apart.write(jobs),
  })
  // one at a time and separately: a small submit must not wait for a statement that carries megabytes of another
  const heavy: Group<PreparedJob, Answer> = group({ most: 1, lanes: 1, write: (jobs) => apart.write(jobs) })
  const unique = makeUniqueSubmitter(store, batchSize)
  return {
    async submit(job) {
      if (job.unique) return unique.submit(job)
      const answer = await (job.inputBytes > heavyBytes ? heavy : single).add(job)
      if (answer instanceof HoldfastError) throw answer
      return answer
    },
    async submitMany({ count, all, some }) {
      const answers = some && (await submitPiped(store, { count, batchSize, make: some, hasKeys: false }))
      if (answers) return answers
      const jobs = await all()
      if (jobs.some((job) => job.unique)) return store.transaction((runner) => submitInSlices(runner, jobs, batchSize))
      const ordered = inKeyOrder(jobs)
      const make: MakeSome = (from, to) => ordered.slice(from, to)
      const hasKeys = jobs.some(({ key }) => key !== null)
      const written = await submitPiped(store, { count, batchSize, make, hasKeys })
      return inOrderOf(jobs, ordered, written as Submitted[])
    },
    idle: async () => void (await Promise.all([single.idle(), heavy.idle(), unique.idle()])),
  }
}

/** Submits jobs inside a transaction that the caller owns: they exist if and only if it commits. */
export async function submitInSlices(runner: Runner, jobs: PreparedJob[], batchSize: number): Promise<Submitted[]> {
  // all keys before all unique keys, and each in order, so that no two transactions can deadlock
  const rounds = roundsOf(jobs.filter((job) => job.unique))
  const ordered = [...inKeyOrder(jobs.filter((job) => !job.unique)), ...rounds.flat()]
  const plain = ordered.slice(0, ordered.length - rounds.flat().length)
  const answers: Submitted[] = []
  for (const slice of slicesOf(plain, batchSize)) answers.push(...(await submitAll(runner, slice)))
  for (const slice of rounds.flatMap((round) => slicesOf(round, batchSize)))
    answers.push(...(await writeUnique(runner, slice)))
  return inOrderOf(jobs, ordered, answers)
}

/**
 * Submits jobs in one transaction: while the server writes one slice, the next is prepared. If some can't be prepared
 * synchronously, writes nothing and resolves with null: nothing may be awaited while the transaction is open.
 */
async function submitPiped(
  store: Store,
  { count, batchSize, make, hasKeys }: { count: number; batchSize: number; make: MakeSome; hasKeys: boolean },
): Promise<Submitted[] | null> {
  // a small first slice, so that the server can start early
  const firstSize = count <= batchSize ? count : Math.ceil(batchSize / 5)
  const first = await prepareInTurns(make, 0, firstSize)
  if (!first) return null
  const parts = slicesOf(first, batchSize)
  // a single statement needs no transaction, except with keys: that one was taken is known only after the commit
  if (count <= batchSize && parts.length === 1 && first.every(({ key }) => key === null)) return submitAll(store, first)
  const write = async (runner: Runner) => {
    const pipe = makePipe(runner)
    try {
      const slices = parts.map(pipe.write)
      for (let start = firstSize; start < count; start += batchSize) {
        const jobs = await prepareInTurns(make, start, Math.min(count, start + batchSize))
        if (!jobs) throw new NotSynchronous()
        await slices.at(-2)
        slices.push(...slicesOf(jobs, batchSize).map(pipe.write))
      }
      return (await Promise.all(slices)).flat()
    } finally {
      await pipe.end()
    }
  }
  // another transaction may hold a key, but nothing else that these jobs need
  const written = hasKeys ? store.contendIn('job.submit', write) : store.transaction(write)
  return written.catch((error) => (error instanceof NotSynchronous ? null : Promise.reject(error)))
}

/** How many jobs to prepare before yielding to the event loop. */
const perTurn = 100

/** Prepares jobs without blocking the event loop. */
async function prepareInTurns(make: MakeSome, from: number, to: number): Promise<PreparedJob[] | null> {
  const jobs: PreparedJob[] = []
  for (let start = from; start < to; start += perTurn) {
    if (start > from) await immediate()
    const some = make(start, Math.min(to, start + perTurn))
    if (!some) return null
    jobs.push(...some)
  }
  return jobs
}

/** Rolls back a transaction whose jobs can't all be prepared synchronously. */
class NotSynchronous extends Error {}

const weightOf = ({ inputBytes }: PreparedJob) => inputBytes

/** Serializing a statement blocks the event loop, so large inputs are spread over several statements. */
const sliceBytes = 131_072

/** Splits jobs, in order, into slices that one statement can carry. */
function slicesOf(jobs: PreparedJob[], batchSize: number): PreparedJob[][] {
  const slices: PreparedJob[][] = []
  for (let start = 0; start < jobs.length; start += slices.at(-1)?.length as number)
    slices.push(jobs.slice(start, start + sizeOfBatch(jobs, start, batchSize, weightOf, sliceBytes)))
  return slices
}

interface Pipe {
  write(slice: PreparedJob[]): Promise<Submitted[]>
  /** Resolves when nothing is under way. Slices that haven't started by then are never written. */
  end(): Promise<void>
}

/**
 * Writes slices one after another: a connection carries one statement at a time, and the driver's own queue must not be
 * used. After a slice has failed, later ones are not written, and their rejections may go unobserved.
 */
function makePipe(runner: Runner): Pipe {
  let last: Promise<unknown> = Promise.resolve()
  let isEnded = false
  return {
    write(slice) {
      // serialized ahead of time, so that the server doesn't wait for it between two slices
      const piece = submitJobs.build({ jobs: slice })
      const written = last.then(() => {
        // outside the transaction, this slice would be stored although the others are not
        if (isEnded) throw new Error('The transaction of this slice has ended.')
        return submitAll(runner, slice, { ...submitJobs, build: () => piece })
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

/** Keys are inserted in the same order across all slices, or two such transactions could deadlock. */
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
async function submitAll(runner: Runner, jobs: PreparedJob[], statement = submitJobs): Promise<Submitted[]> {
  return (await writeAll(runner, jobs, statement)).map((answer) => {
    if (answer instanceof HoldfastError) throw answer
    return answer
  })
}

type Answer = Submitted | HoldfastError

/** Jobs with the same key wait for each other; jobs without a key wait for nothing. */
function nameOf({ id, tenant, key }: PreparedJob): string {
  return key === null ? id : `${tenant}\n${key}`
}

/** A submit that was alone in its batch gets the database's own error. */
function refusalOf(error: unknown, count: number): HoldfastError {
  if (count === 1) throw error
  return asHoldfastError(error)
}

function asHoldfastError(error: unknown): HoldfastError {
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('not_storable', 'Postgres refused this job.', { cause: error })
}

async function writeAll(
  runner: Runner,
  jobs: PreparedJob[],
  statement = submitJobs,
): Promise<(Submitted | HoldfastError)[]> {
  if (jobs.length === 0) return []
  const [written] = await runner.run(statement, { jobs })
  if (written?.count === jobs.length) return jobs.map(({ id }) => newOne(id))
  const accepted = new Set<string>(written?.ids?.slice(1, -1).split(','))
  const taken = jobs.filter((job) => !accepted.has(job.id))
  const holders = await holdersOf(runner, taken)
  return jobs.map((job) => (accepted.has(job.id) ? newOne(job.id) : answerTaken(job, holders)))
}

const newOne = (id: JobId): Submitted => ({ id, isNew: true, outcome: 'submitted' })

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
      `The key ${JSON.stringify(job.key)} belonged to a job that has just been removed; submit again.`,
    )
  if (holder.fingerprint === job.fingerprint) return { id: holder.job_id as JobId, isNew: false, outcome: 'kept' }
  return new HoldfastError(
    'key_conflict',
    `The key ${JSON.stringify(job.key)} was already used with a different kind or input (job ${holder.job_id}); use a new key for a different job.`,
  )
}
