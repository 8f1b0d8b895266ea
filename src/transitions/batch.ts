/**
 * Batches of unrelated rows. The invariant: no row pays for another. A batch is one statement, so one row that the database refuses, or that
 * another transaction has locked, fails or delays all of it. Then the batch is split, and its parts are split again, until the offending
 * rows are alone: one bad row in a thousand costs about thirty statements. Nothing here waits for long: after the first try, everything is
 * bounded.
 *
 * Locked leases and barriers are found all at once, by a lock that skips them. Another write like this one may have locked them, for
 * milliseconds, or a stranger may have, for hours. So each is waited for once, briefly and without holding any other row. Items whose row is
 * not free by then are left for later, and later batches don't wait for rows that are known to be locked.
 *
 * Errors that no row causes are not split but thrown: a broken connection, a server without disk space or memory, a closed store. The caller
 * then does not know what was done before.
 */
import { HoldfastError } from '../errors/errors.ts'
import { isHeldUp, isNobodysFault, isTaken } from '../postgres/connection.ts'
import { lockedError } from '../postgres/contended.ts'
import { atomically, type Runner, type Store } from '../postgres/store.ts'
import { awaitRow, heldRows, type Need, removeTwins } from './held-rows.sql.ts'

/**
 * The result of one item. `refused`: the database rejects it, even on its own. `held`: what it needs is locked, or it takes too long, or
 * there was no time to find out; try later. `isAlone`: no other item can be the cause. `row`: the locked row, if it was found.
 */
export type Told<Answer> =
  | { is: 'done'; answer: Answer }
  | { is: 'refused'; error: unknown }
  | { is: 'held'; error: unknown; isAlone: boolean; row?: string | undefined }

/** Items that one statement can write. */
export interface Batch<Item, Answer> {
  items: readonly Item[]
  /** Writes these, all or none, and returns one answer per item, in order. May run several times, each time in its own transaction. */
  run: (runner: Runner, items: Item[]) => Promise<Answer[]>
  /** The rows that an item needs, if it is about an attempt: items whose rows are locked are then skipped at once. */
  needOf?: (item: Item) => Need
  /** Rows that are known to be locked, by the names in `row` of earlier answers. */
  lockedRows?: ReadonlySet<string>
  /** The job that an item is about, if the item ends it. */
  jobOf?: (item: Item) => string
  /** Looks for locked rows before the first try, so that it waits for none of them. Costs three more round trips. */
  isWary?: boolean
  /** How long one statement may take after the first try, and how long all of them together may wait for locks. */
  answerMs?: number
  patienceMs?: number
  /** After how many refused items the rest are left for later. By then, what can be written in larger parts has been. */
  mostRefused?: number
}

/** How long the first try may take. Far more than a statement needs that waits for no lock. */
const firstMs = 2_000
const partMs = 1_000
/** Into how many parts a batch is split: more parts find one bad row sooner, and cost less if all are bad. */
const ways = 8
const lockMs = 100
const patienceMs = 3_000
/** How many locked rows are waited for, one after the other. */
const mostAwaited = 5

/** An item and its result. */
interface Entry<Item, Answer> {
  readonly item: Item
  told?: Told<Answer>
}

interface Part<Item, Answer> {
  entries: readonly Entry<Item, Answer>[]
  isCareful: boolean
  /** Whether its rows were waited for: the writes of others keep them busy, but none keeps them locked. */
  isAwaited?: boolean
  /** The error of the part that it was split from. */
  error?: unknown
}

/** Runs a batch and returns the result of each item, in order. */
export async function runBatch<Item, Answer>(
  store: Runner | Store,
  batch: Batch<Item, Answer>,
): Promise<Told<Answer>[]> {
  if (batch.items.length === 0) return []
  if (batch.isWary) return new Splitting(store, batch).run()
  try {
    return (await batch.run(boundedTo(store, firstMs), [...batch.items])).map(done)
  } catch (error) {
    if (isNobodys(error)) throw error
    return new Splitting(store, batch).run(error)
  }
}

const done = <Answer>(answer: Answer): Told<Answer> => ({ is: 'done', answer })

function boundedTo(store: Runner, mostMs: number): Runner {
  return { run: (statement, params) => store.run(statement, params, mostMs) }
}

/** Whether no item can have caused this error. */
export function isNobodys(error: unknown): boolean {
  const isClosed = error instanceof HoldfastError && error.code === 'not_running'
  return isClosed || isNobodysFault(error)
}

/** A batch that is being split. Larger parts go first: most items can be written with them. */
class Splitting<Item, Answer> {
  readonly #store: Runner | Store
  readonly #batch: Batch<Item, Answer>
  readonly #parts: Part<Item, Answer>[] = []
  #waitedMs = 0
  #refused = 0

  constructor(store: Runner | Store, batch: Batch<Item, Answer>) {
    this.#store = store
    this.#batch = batch
  }

  /** `error`: the error of the whole batch, if it was tried. */
  async run(error?: unknown): Promise<Told<Answer>[]> {
    const entries: Entry<Item, Answer>[] = this.#batch.items.map((item) => ({ item }))
    if (error === undefined) this.#parts.push({ entries, isCareful: true })
    else await this.#fail({ entries, isCareful: false }, error, 0)
    for (let part = this.#parts.shift(); part; part = this.#parts.shift()) await this.#try(part)
    return entries.map(({ told }) => told as Told<Answer>)
  }

  async #try(part: Part<Item, Answer>): Promise<void> {
    if (part.error !== undefined && this.#refused >= (this.#batch.mostRefused ?? Number.POSITIVE_INFINITY))
      return tellAll(part.entries, { is: 'held', error: part.error, isAlone: false })
    const startedMs = performance.now()
    try {
      await (part.isCareful ? this.#tryCarefully(part) : this.#tryPlainly(part.entries))
    } catch (error) {
      if (isNobodys(error)) throw error
      await this.#fail(part, error, performance.now() - startedMs)
    }
  }

  async #tryPlainly(entries: readonly Entry<Item, Answer>[]): Promise<void> {
    note(entries, await this.#batch.run(boundedTo(this.#store, this.#partMs), itemsOf(entries)))
  }

  /** Skips locked rows, and waits only briefly for other locks. */
  async #tryCarefully({ entries, isAwaited }: Part<Item, Answer>): Promise<void> {
    const { held, free, answers } = await atomically(
      this.#store,
      async (runner) => {
        const rows = isAwaited ? new Map<Entry<Item, Answer>, string>() : await this.#heldOf(runner, entries)
        const mine = entries.filter((entry) => !rows.has(entry))
        return { held: rows, free: mine, answers: mine.length > 0 ? await this.#batch.run(runner, itemsOf(mine)) : [] }
      },
      { lockMs, answerMs: this.#partMs },
    )
    note(free, answers)
    if (held.size > 0) await this.#awaitRows(held)
  }

  /** The locked row of each entry that needs one. */
  async #heldOf(runner: Runner, entries: readonly Entry<Item, Answer>[]): Promise<Map<Entry<Item, Answer>, string>> {
    const { needOf } = this.#batch
    if (!needOf) return new Map()
    const held = await runner.run(heldRows, { needs: entries.map(({ item }) => needOf(item)) })
    return new Map(held.map(({ place, row }) => [entries[place - 1] as Entry<Item, Answer>, row]))
  }

  /** Waits for each locked row, unless it is known to be locked, and tries the entries again whose row was free in time. */
  async #awaitRows(held: ReadonlyMap<Entry<Item, Answer>, string>): Promise<void> {
    const rows = [...new Set(held.values())].filter((row) => !this.#batch.lockedRows?.has(row))
    const free = new Set<string>()
    for (const row of rows.slice(0, mostAwaited)) if (await this.#isFreeSoon(row)) free.add(row)
    const again = [...held.keys()].filter((entry) => free.has(held.get(entry) as string))
    if (again.length > 0) this.#parts.push({ entries: again, isCareful: true, isAwaited: true })
    for (const [entry, row] of held)
      if (!free.has(row)) entry.told = { is: 'held', error: heldError(row), isAlone: true, row }
  }

  /** Whether a row can be locked soon. The lock is given up at once: who waits for a second row must not hold this one. */
  async #isFreeSoon(row: string): Promise<boolean> {
    // inside a caller's transaction, a lock that is not had at once would end that transaction
    if (!('transaction' in this.#store)) return false
    const [table, id] = row.split(' ') as [keyof typeof awaitRow, string]
    try {
      await this.#store.transaction((runner) => runner.run(awaitRow[table], { id }), { lockMs, answerMs: this.#partMs })
      return true
    } catch (error) {
      if (isHeldUp(error)) return false
      throw error
    }
  }

  async #fail({ entries, isCareful }: Part<Item, Answer>, error: unknown, waitedMs: number): Promise<void> {
    const isHeld = isHeldUp(error)
    if (isHeld) this.#waitedMs += waitedMs
    if (entries.length === 1) return this.#failAlone(entries[0] as Entry<Item, Answer>, error, isHeld)
    // the rest have waited long enough, and so have their callers
    if (isHeld && this.#waitedMs >= this.#patienceMs) return tellAll(entries, { is: 'held', error, isAlone: false })
    // locked rows are skipped all together before anything is split
    if (isHeld && !isCareful) return void this.#parts.push({ entries, isCareful: true })
    const size = Math.ceil(entries.length / ways)
    for (let from = 0; from < entries.length; from += size)
      this.#parts.push({ entries: entries.slice(from, from + size), isCareful: isHeld, error })
  }

  async #failAlone(entry: Entry<Item, Answer>, error: unknown, isHeld: boolean): Promise<void> {
    if (isHeld) entry.told = { is: 'held', error, isAlone: true }
    else if (isTaken(error, 'outcome_pkey')) entry.told = await this.#withoutTwin(entry.item, error)
    else entry.told = { is: 'refused', error }
    if (entry.told.is === 'refused') this.#refused += 1
  }

  async #withoutTwin(item: Item, refusal: unknown): Promise<Told<Answer>> {
    const { jobOf, run } = this.#batch
    if (!jobOf) return { is: 'refused', error: refusal }
    try {
      return await atomically(
        this.#store,
        async (runner) => {
          await runner.run(removeTwins, { ids: [jobOf(item)] })
          const [answer] = await run(runner, [item])
          return done(answer as Answer)
        },
        { lockMs, answerMs: this.#partMs },
      )
    } catch (error) {
      if (isNobodys(error)) throw error
      return isHeldUp(error) ? { is: 'held', error, isAlone: true } : { is: 'refused', error }
    }
  }

  get #partMs(): number {
    return this.#batch.answerMs ?? partMs
  }

  get #patienceMs(): number {
    return this.#batch.patienceMs ?? patienceMs
  }
}

function itemsOf<Item>(entries: readonly Entry<Item, unknown>[]): Item[] {
  return entries.map(({ item }) => item)
}

function note<Answer>(entries: readonly Entry<unknown, Answer>[], answers: readonly Answer[]): void {
  for (const [index, entry] of entries.entries()) entry.told = done(answers[index] as Answer)
}

function tellAll<Answer>(entries: readonly Entry<unknown, Answer>[], told: Told<Answer>): void {
  for (const entry of entries) entry.told = told
}

/** The error of a job that was skipped: what the server would say if we had waited. */
function heldError(row: string): Error {
  return lockedError(`The row of its ${row} in the database`)
}
