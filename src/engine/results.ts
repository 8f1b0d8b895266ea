/**
 * Waits for jobs to become final, for all callers of this process together. They are looked for in groups and on a connection of their own, so
 * however many wait, they take nothing from submits, claims and settles. Whoever waits gets no error for waiting: a look that fails is made again.
 */
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { FinalState } from '../job/machine.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { isPassing } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import { LookSchedule } from './look-schedule.ts'
import { type EndingRow, endingsOf } from './results.sql.ts'

/** How a job ended. */
export interface Ending {
  id: JobId
  state: FinalState
  /** The stage that it ended in. */
  stage: number
  error: { code: string; message: string } | null
  outputs: { name: string; stage: number; output: unknown }[]
}

/** How long somebody waits. */
interface Patience {
  timeoutMs: number | undefined
  signal: AbortSignal | undefined
}

interface Waiter {
  resolve: (ending: Ending) => void
  reject: (error: unknown) => void
  /** Whether a look has answered since it came: before that nobody can say that the job is not final. */
  isLookedFor: boolean
  /** Set once its time is over. */
  expire?: () => void
}

/** A job that somebody waits for. */
interface AwaitedJob {
  id: JobId
  waiters: Set<Waiter>
  looks: number
  /** Asked for at once while a look was under way, which may have come too early. */
  isHurried: boolean
  isUnderWay: boolean
}

const mostAtOnce = 1_000
/** Outputs of no more than that travel at once, as stored; the rest come with the next look. */
const mostBytes = 4 * 1024 * 1024
/** With more waiting than one look can carry, looking again takes a quarter of the time of its connection. */
const restPerLook = 3
const nothingToDoMs = 60_000

/** The waits for results of an engine. */
export class Results implements Service {
  readonly #store: Store
  readonly #looker: Loop
  readonly #awaited = new Map<JobId, AwaitedJob>()
  readonly #schedule = new LookSchedule<AwaitedJob>()
  #restsUntilMs = 0
  #isStarted = false
  #isStopped = false

  constructor(store: Store, onTrouble: (error: unknown) => void) {
    this.#store = store
    this.#looker = loop({ turn: () => this.#look(), onError: onTrouble })
  }

  /** Resolves once the job is final. Throws job_not_found, or result_timeout while the job goes on. */
  wait(id: JobId, { timeoutMs, signal }: Patience): Promise<Ending> {
    if (this.#isStopped) return Promise.reject(closed('This Holdfast was closed.'))
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

  /** A job has ended in this process: if somebody waits for it, look now. */
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
    const error = closed('This Holdfast was closed while the result was awaited.')
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
          `Job ${id} was not final after ${timeoutMs} ms. It goes on; ask again later.`,
        ),
      )
    // beyond what a timer can hold (24 days), nobody waits for the end anyway
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

  /** Looks for those that are due, as many as one look can carry, and answers when to look again. */
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
        unseen: jobs.filter(({ looks }) => looks === 0).map(({ id }) => id),
        mostBytes,
      })
      const byId = new Map(rows.map((row) => [row.id as JobId, row]))
      for (const { job, waiters } of asked) this.#tell(job, waiters, byId.get(job.id))
    } catch (error) {
      for (const { job, waiters } of asked) this.#comeBack(job, waiters)
      if (isPassing(error)) throw error
      for (const { waiters } of asked) for (const waiter of waiters) waiter.reject(error)
    }
  }

  #tell(job: AwaitedJob, waiters: Waiter[], row: EndingRow | undefined): void {
    if (job.looks === 0 && row === undefined) {
      const error = new HoldfastError('job_not_found', `There is no job ${job.id}.`)
      for (const waiter of waiters) waiter.reject(error)
    } else job.looks += 1
    if (row?.outputs) for (const waiter of job.waiters) waiter.resolve(row as Ending)
    // final, but too large to travel with the others
    else if (row?.state) job.isHurried = true
    this.#comeBack(job, waiters)
  }

  /** Those whose time was over before anybody could look have had their look. */
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

function closed(message: string): HoldfastError {
  return new HoldfastError('not_running', message)
}
