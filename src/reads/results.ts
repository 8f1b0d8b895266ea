/**
 * Waits for jobs to become final, for all callers of this process together. It queries them in groups, on a separate connection, so that waits
 * take nothing from submits, claims and settles, however many there are. A query that fails is repeated, and callers don't notice.
 */
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { FinalState } from '../job/machine.ts'
import { isPassing } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { noJob } from './gone.ts'
import { LookSchedule } from './look-schedule.ts'
import { type EndingRow, endingsOf } from './results.sql.ts'

/** How a job ended. */
export interface Ending {
  id: JobId
  state: FinalState
  /** The stage in which it ended. */
  stage: number
  error: { code: string; message: string } | null
  outputs: { name: string; stage: number; output: unknown }[]
}

/** How long a caller waits. */
interface Patience {
  timeoutMs: number | undefined
  signal: AbortSignal | undefined
}

interface Waiter {
  resolve: (ending: Ending) => void
  reject: (error: unknown) => void
  /** Whether a query has returned since it came: before that, it is unknown whether the job is final. */
  isLookedFor: boolean
  /** Set once it has timed out. */
  expire?: () => void
}

/** A job that callers wait for. */
interface AwaitedJob {
  id: JobId
  waiters: Set<Waiter>
  looks: number
  /** Requested at once while a query was running, which may have come too early. */
  isHurried: boolean
  isUnderWay: boolean
}

const mostAtOnce = 1_000
/** The maximum size of the outputs that one query returns, as stored; the rest come with the next query. */
const mostBytes = 4 * 1024 * 1024
/** If more jobs are awaited than one query can check, querying takes a quarter of the time. */
const restPerLook = 3
const nothingToDoMs = 60_000
/** After this many queries, check again that a job still exists: one that has ended may have been removed. */
const looksPerProof = 5

/** The waits for results of an engine. */
export class Results implements Service {
  readonly #store: Store
  readonly #looker: Loop
  readonly #awaited = new Map<JobId, AwaitedJob>()
  readonly #schedule = new LookSchedule<AwaitedJob>()
  #restsUntilMs = 0
  #isStarted = false
  #isStopped = false

  constructor(store: Store, onError: (error: unknown) => void) {
    this.#store = store
    this.#looker = loop({ turn: () => this.#look(), onError: onError })
  }

  /** Resolves once the job is final. Throws job_not_found, or result_timeout while the job continues. */
  wait(id: JobId, { timeoutMs, signal }: Patience): Promise<Ending> {
    if (this.#isStopped) return Promise.reject(closed('This Holdfast instance is closed.'))
    let forget = () => {}
    const ended = new Promise<Ending>((resolve, reject) => {
      const waiter: Waiter = { resolve, reject, isLookedFor: false }
      const forgetTimes = this.#limit(id, waiter, { timeoutMs, signal })
      const leave = this.#add(id, waiter)
      forget = () => {
        forgetTimes()
        leave()
      }
    })
    return ended.finally(() => forget())
  }

  /** A job has ended in this process: if it is awaited, query it now. */
  settled(id: JobId): void {
    const job = this.#awaited.get(id)
    if (job) this.#hurry(job)
  }

  async start(): Promise<void> {
    this.#isStarted = true
    await this.#looker.start()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const error = closed('This Holdfast instance was closed while waiting for the result.')
    for (const { waiters } of this.#awaited.values()) for (const waiter of waiters) waiter.reject(error)
    this.#awaited.clear()
    await this.#looker.stop()
  }

  #add(id: JobId, waiter: Waiter): () => void {
    const job = this.#awaited.get(id) ?? { id, waiters: new Set(), looks: 0, isHurried: false, isUnderWay: false }
    job.waiters.add(waiter)
    this.#awaited.set(id, job)
    this.#hurry(job)
    if (!this.#isStarted) void this.start()
    return () => {
      job.waiters.delete(waiter)
      if (job.waiters.size > 0 || this.#awaited.get(id) !== job) return
      this.#awaited.delete(id)
      this.#schedule.delete(job)
    }
  }

  #hurry(job: AwaitedJob): void {
    if (job.isUnderWay) job.isHurried = true
    else this.#schedule.hurry(job)
    this.#looker.wake()
  }

  #limit(id: JobId, waiter: Waiter, { timeoutMs, signal }: Patience): () => void {
    let timer: NodeJS.Timeout | undefined
    const abort = () => waiter.reject(signal?.reason ?? new Error('aborted'))
    const expire = () =>
      waiter.reject(
        new HoldfastError(
          'result_timeout',
          `Job ${id} was not final after ${timeoutMs} ms. It continues; ask again later.`,
        ),
      )
    // a timer can't hold more than 24 days, and nobody waits that long
    if (timeoutMs !== undefined && timeoutMs < 2 ** 31)
      timer = setTimeout(() => {
        if (waiter.isLookedFor) expire()
        else waiter.expire = expire
      }, timeoutMs)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    return () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Queries the jobs that are due, up to the limit of one query, and returns when to query again. */
  async #look(): Promise<number> {
    const startedMs = performance.now()
    const jobs = this.#schedule.take(mostAtOnce, startedMs, startedMs < this.#restsUntilMs ? 'urgent' : 'all')
    if (jobs.length > 0) await this.#lookFor(jobs)
    const nowMs = performance.now()
    if (jobs.length === mostAtOnce) this.#restsUntilMs = nowMs + restPerLook * (nowMs - startedMs)
    if (this.#schedule.hasUrgent) return 0
    const nextMs = Math.max(this.#restsUntilMs, this.#schedule.nextDueMs())
    return Math.min(nothingToDoMs, Math.max(1, nextMs - nowMs))
  }

  async #lookFor(jobs: AwaitedJob[]): Promise<void> {
    const asked = jobs.map((job) => ({ job, waiters: [...job.waiters] }))
    for (const job of jobs) job.isUnderWay = true
    try {
      const rows = await this.#store.run(endingsOf, {
        ids: jobs.map(({ id }) => id),
        unseen: jobs.filter(isToBeProven).map(({ id }) => id),
        mostBytes,
      })
      const byId = new Map(rows.map((row) => [row.id as JobId, row]))
      for (const { job, waiters } of asked) {
        if (isToBeProven(job) && !byId.has(job.id)) await this.#tellMissing(job, waiters)
        this.#tell(job, waiters, byId.get(job.id))
      }
    } catch (error) {
      if (jobs.length > 1 && !isPassing(error)) return this.#lookApart(jobs)
      for (const { job, waiters } of asked) this.#comeBack(job, waiters)
      if (isPassing(error)) throw error
      for (const { waiters } of asked) for (const waiter of waiters) waiter.reject(error)
    }
  }

  /** One of these jobs can't be read, but the others may be. */
  async #lookApart(jobs: AwaitedJob[]): Promise<void> {
    const half = Math.ceil(jobs.length / 2)
    await this.#lookFor(jobs.slice(0, half))
    await this.#lookFor(jobs.slice(half))
  }

  #tell(job: AwaitedJob, waiters: Waiter[], row: EndingRow | undefined): void {
    if (job.looks > 0 || row !== undefined) job.looks += 1
    if (row?.outputs) for (const waiter of job.waiters) waiter.resolve(row as Ending)
    // final, but too large to be returned with the others
    else if (row?.state) job.isHurried = true
    this.#comeBack(job, waiters)
  }

  /** A job that existed and is gone has ended, and was removed before a query could see it. */
  async #tellMissing(job: AwaitedJob, waiters: Waiter[]): Promise<void> {
    const unknown = await noJob(this.#store, job.id, null)
    const error = job.looks > 0 && unknown.code === 'job_not_found' ? removedUnseen(job.id) : unknown
    for (const waiter of waiters) waiter.reject(error)
  }

  /** Waiters that timed out before a query could return have now had theirs. */
  #comeBack(job: AwaitedJob, waiters: Waiter[]): void {
    for (const waiter of waiters) {
      waiter.isLookedFor = true
      waiter.expire?.()
    }
    job.isUnderWay = false
    if (this.#awaited.get(job.id) !== job) return
    if (job.isHurried) this.#schedule.hurry(job)
    else this.#schedule.add(job, job.looks, performance.now())
    job.isHurried = false
  }
}

function isToBeProven({ looks }: AwaitedJob): boolean {
  return looks % looksPerProof === 0
}

function removedUnseen(id: JobId): HoldfastError {
  return new HoldfastError(
    'job_gone',
    `Job ${id} has ended, and was removed before its result could be read. Set a longer \`keep\` on its kind.`,
  )
}

function closed(message: string): HoldfastError {
  return new HoldfastError('not_running', message)
}
