import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Fence, JobId } from '../job/id.ts'
import type { MoveName } from '../job/machine.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import type { Log } from './log.ts'

/** What a listener can listen to, and the move behind it. */
const heard = {
  succeeded: 'finish',
  advanced: 'advance',
  fannedOut: 'fanOut',
  failed: 'fail',
  retried: 'retry',
  released: 'release',
  snoozed: 'snooze',
  revived: 'revive',
  quarantined: 'quarantine',
  cancelled: 'cancel',
} as const satisfies Record<string, MoveName>

/** What a listener can listen to. */
export type HeardName = keyof typeof heard

/** What happened to a job by the hand of this process. */
export interface Heard {
  readonly name: HeardName
  readonly id: JobId
  /** Null for a cancel, which is asked by id. */
  readonly kind: string | null
  /** The name of the stage, if known. */
  readonly stage: string | null
  readonly attempt: number | null
  /** Why it failed or is retried. */
  readonly error: JobError | null
}

/** A function that is told what this process did. What it returns is ignored; if it throws, that is logged. */
export type Listener = (heard: Heard) => unknown

const names = Object.keys(heard) as HeardName[]
const nameOf = new Map<MoveName, HeardName>(names.map((name) => [heard[name], name]))

/** The listeners of a process. A listener that throws harms nobody. */
export class Listeners {
  readonly #log: Log
  readonly #listeners = new Map<HeardName, Set<Listener>>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Adds a listener, and returns the function that removes it. */
  on(name: HeardName, listener: Listener): () => void {
    if (!names.includes(name))
      throw new HoldfastError(
        'option_invalid',
        `There is nothing called ${JSON.stringify(name)} to listen to; use ${names.join(', ')}.`,
      )
    if (typeof listener !== 'function') throw new HoldfastError('option_invalid', 'The listener must be a function.')
    // the same function may be added twice, and each is removed on its own
    const own: Listener = (told) => listener(told)
    const all = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, all.add(own))
    return () => void all.delete(own)
  }

  /** Tells how an attempt was settled. */
  settled({ fence, kind, stage }: { fence: Fence; kind: string; stage: string }, outcome: Outcome): void {
    if (this.#listeners.size === 0) return
    const error = 'error' in outcome ? (outcome.error ?? null) : null
    this.tell(outcome.move, { id: fence.id, kind, stage, attempt: fence.attempt, error })
  }

  /** Tells what a move did to a job. */
  tell(move: MoveName, facts: Omit<Heard, 'name'>): void {
    const name = nameOf.get(move)
    const all = name && this.#listeners.get(name)
    if (!all) return
    for (const listener of all) this.#call(listener, { name, ...facts })
  }

  #call(listener: Listener, told: Heard): void {
    const failed = (error: unknown) =>
      this.#log.warn({ listener: told.name, job: told.id, reason: messageOf(error) }, 'a listener failed')
    try {
      const returned = listener(told) as PromiseLike<unknown> | undefined
      if (typeof returned?.then === 'function') Promise.resolve(returned).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}
