/**
 * Outcomes that could not be written yet, although nothing is wrong with them: a row that they need is locked, or the
 * database takes too long. They are kept apart, so that other outcomes don't wait for them, and are retried together
 * with growing pauses, until they are written, refused, or the worker gives up. Meanwhile their deadlines are extended,
 * because their handlers have returned and must not run again.
 */
import { isCancelled, isPassing } from '../postgres/connection.ts'
import { Late, sizeOfBatch } from '../service/group.ts'
import { pause } from '../service/service.ts'
import type { Told } from '../transitions/batch.ts'
import type { Settled, Settlement } from './outcome.ts'
import { type Answer, alike, answerOf, asError, type SettleParts, settleApart, weightOf } from './settle-batch.ts'
import { moveKeyOf } from './write.ts'

type Held = Exclude<Told<Settled>, { is: 'done' }>

interface Kept {
  readonly settlement: Settlement
  readonly answer: (answer: Answer) => void
  readonly untilMs: number
  error: unknown
  /** The locked row that it waits for, if that is known. */
  row: string | undefined
  tries: number
  /** How often in a row it took longer than a statement may, although it was alone in its batch. */
  slow: number
  dueMs: number
}

const longestPauseMs = 2_000
const longestRefusedMs = 30_000
/** A database that is only slow gets more time with every try. */
const answerMs = (tries: number) => 1_000 * 4 ** Math.min(3, tries - 1)
/** From this try on, it has had as much time as a statement may take. */
const fullTries = 3
/** An outcome that alone takes longer than that this often in a row is given up: it always will. */
const mostSlow = 2
/** How many parts of a batch may take too long, one after the other. */
const mostSlowParts = 12

/**
 * Whether to retry this: its row is locked, or nothing else could be written instead. If the database refuses every
 * change of a job, the job stays with its worker, which doesn't run it again.
 */
export function isKept({ outcome }: Settlement, told: Told<Settled>): told is Held {
  if (told.is !== 'refused') return told.is === 'held'
  const move = moveKeyOf(outcome)
  return (move === 'park' || move === 'release') && !isPassing(told.error)
}

/** The outcomes that a settler has to retry. */
export class LateSettlements {
  readonly #options: SettleParts
  readonly #kept = new Set<Kept>()
  /** The locked rows of those kept; undefined after a change. */
  #rows: ReadonlySet<string> | undefined
  #isTrying = false
  readonly #unreported: Kept[] = []

  constructor(options: SettleParts) {
    this.#options = options
  }

  get size(): number {
    return this.#kept.size
  }

  /** The rows that outcomes wait for. New outcomes that need one of them join the wait at once. */
  lockedRows(): ReadonlySet<string> {
    this.#rows ??= new Set([...this.#kept].flatMap(({ row }) => row ?? []))
    return this.#rows
  }

  /** Keeps a settlement until there is an answer. */
  keep(settlement: Settlement, held: Held): Late<Answer> {
    return new Late(
      new Promise((answer) => {
        const untilMs = performance.now() + (this.#options.patienceMs ?? Number.POSITIVE_INFINITY)
        const kept: Kept = {
          settlement,
          answer,
          untilMs,
          error: held.error,
          row: undefined,
          tries: 0,
          slow: 0,
          dueMs: 0,
        }
        this.#kept.add(kept)
        this.#heldAgain(kept, held)
        if (!this.#isTrying) void this.#tryAll()
      }),
    )
  }

  async #tryAll(): Promise<void> {
    this.#isTrying = true
    const { givenUp } = this.#options
    while (this.#kept.size > 0) {
      await this.#extendDeadlines()
      let nextMs = performance.now() + longestPauseMs
      for (const { dueMs } of this.#kept) nextMs = Math.min(nextMs, dueMs)
      await pause(Math.max(0, nextMs - performance.now()), givenUp)
      const nowMs = performance.now()
      const due = [...this.#kept].filter(({ dueMs }) => givenUp.aborted || dueMs <= nowMs)
      await this.#tryThese(due)
    }
    this.#isTrying = false
  }

  async #tryThese(due: Kept[]): Promise<void> {
    const { batchSize } = this.#options
    const bySettlement = new Map(due.map((kept) => [kept.settlement, kept]))
    /** Rows that were waited for in this round. */
    const lockedRows = new Set<string>()
    for (const same of alike([...bySettlement.keys()]))
      for (let from = 0, size = 0; from < same.length; from += size) {
        size = sizeOfBatch(same, from, batchSize, weightOf)
        const mine = same.slice(from, from + size).map((settlement) => bySettlement.get(settlement) as Kept)
        await this.#tryBatch(mine, lockedRows)
        await this.#extendDeadlines()
      }
  }

  async #tryBatch(mine: Kept[], lockedRows: Set<string>): Promise<void> {
    const mostMs = answerMs(Math.min(...mine.map(({ tries }) => tries)))
    const bounds = { answerMs: mostMs, patienceMs: mostSlowParts * mostMs }
    const same = mine.map(({ settlement }) => settlement)
    const told = await settleApart(this.#options, same, { isWary: true, lockedRows, ...bounds })
    for (const [index, kept] of mine.entries()) {
      this.#tell(kept, told[index] as Told<Settled>)
      if (kept.row !== undefined) lockedRows.add(kept.row)
    }
  }

  async #extendDeadlines(): Promise<void> {
    const { deadlines, onError } = this.#options
    await deadlines.extend().catch(onError)
  }

  #tell(kept: Kept, told: Told<Settled>): void {
    if (isKept(kept.settlement, told)) this.#heldAgain(kept, told)
    else this.#end(kept, answerOf(told))
  }

  #heldAgain(kept: Kept, told: Held): void {
    const { givenUp } = this.#options
    const { error } = told
    kept.error = error
    kept.row = told.is === 'held' ? told.row : undefined
    this.#rows = undefined
    const isSlow = told.is === 'held' && told.isAlone && isCancelled(error)
    kept.slow = isSlow && kept.tries >= fullTries ? kept.slow + 1 : 0
    kept.tries += 1
    if (kept.slow === mostSlow || givenUp.aborted || performance.now() >= kept.untilMs) {
      this.#end(kept, kept.slow === mostSlow ? tooSlow(error) : asError(error))
      return
    }
    // report the first retry, and then fewer and fewer
    if (Number.isInteger(Math.log2(kept.tries))) this.#report(kept)
    kept.dueMs =
      performance.now() + Math.min(told.is === 'held' ? longestPauseMs : longestRefusedMs, 100 * 2 ** kept.tries)
  }

  /** Reports this one and all others of the same moment together: there may be thousands. */
  #report(kept: Kept): void {
    if (this.#unreported.push(kept) > 1) return
    setImmediate(() => this.#options.onError(waiting(this.#unreported.splice(0))))
  }

  #end(kept: Kept, answer: Answer): void {
    this.#kept.delete(kept)
    this.#rows = undefined
    kept.answer(answer)
  }
}

function waiting(all: Kept[]): Error {
  const { settlement, error } = all[0] as Kept
  const { fence, outcome } = settlement
  const others = all.length > 1 ? ` (and ${all.length - 1} more)` : ''
  return new Error(
    `The outcome (${outcome.move}) of job ${fence.id}, attempt ${fence.attempt}, could not be written yet${others}; retrying: ${asError(error).message}`,
    { cause: error },
  )
}

/** Not a passing error: the outcome must not be retried. */
function tooSlow(error: unknown): Error {
  return new Error(`the statement exceeded its timeout: ${asError(error).message}`)
}
