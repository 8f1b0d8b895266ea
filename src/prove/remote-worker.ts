import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError, messageOf, PermanentError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { Fence, JobId } from '../job/id.ts'
import type { RemoteAttempt } from '../remote/claim.ts'
import type { OpenedRemote } from '../remote/remote.ts'
import type { RemoteOutcome } from '../remote/validate.ts'
import { monotonicMs } from '../service/clock.ts'
import { pause } from '../service/service.ts'
import type { Context, Report } from './observed.ts'
import { remoteKinds } from './remote-kinds.ts'
import { cellSettings } from './settings.ts'

interface HeldAttempt {
  fence: Fence
  abort: AbortController
}

const retryMs = 50

/** A handler gave its attempt back. */
class Snoozed extends Error {
  readonly ms: number

  constructor(ms: number) {
    super(`Snoozed for ${ms} ms.`)
    this.ms = ms
  }
}

/** A worker that knows only what the remote API answers, as a program in another language would. Its server happens to be in this process. */
export class RemoteWorker {
  readonly #hf: Holdfast
  readonly #kinds: Record<string, AnyJob>
  readonly #held = new Map<string, HeldAttempt>()
  readonly #settling = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  #heldUntilMs = 0
  #running: Promise<void> | undefined

  constructor(hf: Holdfast, report: Report) {
    this.#hf = hf
    this.#kinds = remoteKinds(report)
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#abortAll('shutdown')
    await this.#running
  }

  /** Works under one session after another until it is stopped. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const sentAtMs = monotonicMs()
      const session = await this.#hf.remote.open(descriptionOf(this.#kinds)).catch(() => pause(retryMs, signal))
      if (!session) continue
      this.#extendLease(session, sentAtMs)
      const over = new AbortController()
      await Promise.all([
        this.#keepAlive(session, over),
        this.#claim(session, over.signal),
        this.#watchLease(over.signal),
      ])
      await Promise.all(this.#settling)
      if (signal.aborted) await untilAnswered(() => this.#hf.remote.close(session.id))
    }
  }

  /** Renews the lease until the session is over, or until the worker has stopped and given everything back. */
  async #keepAlive(session: OpenedRemote, over: AbortController): Promise<void> {
    while (!this.#stopping.signal.aborted || this.#held.size > 0) {
      const sentAtMs = monotonicMs()
      try {
        const held = [...this.#held.values()].map(({ fence }) => fence)
        const { lost } = await this.#hf.remote.beat(session.id, { held })
        this.#extendLease(session, sentAtMs)
        for (const { id, attempt, reason } of lost) this.#held.get(keyOf({ id, attempt }))?.abort.abort({ reason })
      } catch (error) {
        if (isSessionOver(error)) break
      }
      await pause(cellSettings.heartbeatMs)
    }
    over.abort()
    this.#abortAll('lease_lost')
  }

  /** Aborts handlers on the clock of this process, before the database reassigns their jobs. */
  async #watchLease(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      if (!this.#hasLease()) this.#abortAll('lease_lost')
      await pause(10, over)
    }
  }

  async #claim(session: OpenedRemote, over: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([over, this.#stopping.signal])
    while (!signal.aborted) {
      try {
        const attempts = await this.#hf.remote.claim(session.id, { most: 4, waitMs: 500, signal })
        for (const attempt of attempts) this.#begin(session, attempt)
      } catch (error) {
        if (isSessionOver(error)) return
        await pause(retryMs, signal)
      }
    }
  }

  #begin(session: OpenedRemote, attempt: RemoteAttempt): void {
    const abort = new AbortController()
    const key = keyOf(attempt)
    this.#held.set(key, { fence: { id: attempt.id as JobId, attempt: attempt.attempt }, abort })
    const settled = this.#handle(session, attempt, abort.signal)
      .then((outcome) => this.#settle(session, attempt, outcome))
      .finally(() => {
        this.#held.delete(key)
        this.#settling.delete(settled)
      })
    this.#settling.add(settled)
  }

  async #handle(session: OpenedRemote, attempt: RemoteAttempt, signal: AbortSignal): Promise<RemoteOutcome> {
    const mine = { id: attempt.id, attempt: attempt.attempt }
    if (!this.#hasLease()) return { ...mine, outcome: 'released' }
    const stage = this.#kinds[attempt.kind]?.stages.find(({ name }) => name === attempt.stage)
    const ctx = this.#contextOf(session, attempt, signal)
    try {
      return { ...mine, outcome: 'succeeded', output: await stage?.run?.(ctx as never) }
    } catch (thrown) {
      if (signal.aborted) return { ...mine, outcome: 'released' }
      if (thrown instanceof Snoozed) return { ...mine, outcome: 'snoozed', delayMs: thrown.ms }
      const isPermanent = thrown instanceof PermanentError
      return { ...mine, outcome: 'failed', error: { message: messageOf(thrown), isPermanent } }
    }
  }

  #contextOf(session: OpenedRemote, attempt: RemoteAttempt, signal: AbortSignal): Context {
    const mine = { id: attempt.id, attempt: attempt.attempt }
    const report = (facts: object) => {
      void this.#hf.remote.progress(session.id, [{ ...mine, ...facts }]).catch(() => {})
    }
    return {
      job: { ...attempt, id: attempt.id as JobId },
      stage: attempt.stage,
      attempt: attempt.attempt,
      signal,
      progress: (done, total, note) => report({ done, total, note }),
      log: (message, data) => report({ log: [{ message, data }] }),
      snooze: (ms) => {
        throw new Snoozed(ms)
      },
    }
  }

  async #settle({ id }: OpenedRemote, { kind }: RemoteAttempt, outcome: RemoteOutcome): Promise<void> {
    const [settled] = (await untilAnswered(() => this.#hf.remote.settle(id, [outcome]))) ?? []
    if (kind !== 'remote-staged' || settled !== 'settled') return
    // once more, as if the response had been lost
    await untilAnswered(() => this.#hf.remote.settle(id, [outcome]))
  }

  #extendLease({ leaseMs }: OpenedRemote, sentAtMs: number): void {
    this.#heldUntilMs = sentAtMs + leaseMs - cellSettings.abortMarginMs
  }

  #hasLease(): boolean {
    return monotonicMs() < this.#heldUntilMs
  }

  #abortAll(reason: string): void {
    for (const { abort } of this.#held.values()) abort.abort({ reason })
  }
}

/** Repeats a request until it is answered: each may be carried out twice. Gives up once every lease has run out. */
async function untilAnswered<T>(request: () => Promise<T>): Promise<T | undefined> {
  const untilMs = monotonicMs() + 3 * cellSettings.leaseMs
  while (monotonicMs() < untilMs) {
    try {
      return await request()
    } catch (error) {
      if (isSessionOver(error)) return undefined
      await pause(retryMs)
    }
  }
  return undefined
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}

function descriptionOf(kinds: Record<string, AnyJob>) {
  return {
    tenant: 'default',
    pid: process.pid,
    host: 'remote',
    kinds: Object.values(kinds).map(({ kind, stages }) => ({
      name: kind,
      stages: stages.map(({ name, optional, wait }) => ({ name, optional, wait })),
    })),
  }
}

function isSessionOver(error: unknown): boolean {
  return error instanceof HoldfastError && ['session_ended', 'session_not_found', 'not_running'].includes(error.code)
}
