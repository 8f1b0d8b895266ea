/**
 * Batches of strangers' rows. The invariant: nobody pays for somebody else's row. A batch is one statement, so one row that the database
 * refuses, or that another transaction holds locked, fails or delays all of it. Then the batch is cut into parts, and the parts into parts,
 * until the rows that are to blame are alone: one bad row in a thousand costs about thirty statements. Rows that somebody holds are found
 * all at once, by a lock that skips them, and left for later. Nothing here waits for long: after the first try, each has its bounds.
 *
 * What is no row's fault is not split: a broken wire, a server without disk space or memory, a store that was closed. It is thrown, and
 * what was carried out before it is unknown to the caller.
 */
import { HoldfastError } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import { isConnectionError, isHeldUp, isOutOfResources, isTaken } from './connection.ts'
import { heldLeases, removeTwins } from './held.sql.ts'
import { type Runner, type Store, within } from './store.ts'

/**
 * What became of one item. `refused`: the database does not take it, whoever travels with it. `held`: somebody holds what it needs, or it
 * takes too long, or there was no time to find out; come back later. `isAlone`: no other item can be the cause.
 */
export type Told<Answer> =
  | { is: 'done'; answer: Answer }
  | { is: 'refused'; error: unknown }
  | { is: 'held'; error: unknown; isAlone: boolean }

/** Items that one statement can write. */
export interface Batch<Item, Answer> {
  items: readonly Item[]
  /** Writes these, all or none, and answers one by one in their order. May run several times, each time in a transaction of its own. */
  run: (runner: Runner, items: Item[]) => Promise<Answer[]>
  /** The lease that an item is about, if it is about one: those that somebody holds are then skipped at once. */
  leaseOf?: (item: Item) => number
  /** The job that an item is about, if that is about to end. */
  jobOf?: (item: Item) => string
  /** Looks for held rows before the first try, so that none of them is waited for. Costs three more round trips. */
  isWary?: boolean
  /** How long one statement may take after the first try, and how long all of them may wait for others. */
  answerMs?: number
  patienceMs?: number
}

/** How long the first try may take. Far more than a statement needs that waits for nobody. */
const firstMs = 2_000
const partMs = 1_000
/** Into how many parts a batch is cut: more find one bad row sooner, and cost less if all are bad. */
const ways = 8
const lockMs = 100
const patienceMs = 3_000

/** An item, and what became of it. */
interface Entry<Item, Answer> {
  readonly item: Item
  told?: Told<Answer>
}

interface Part<Item, Answer> {
  entries: readonly Entry<Item, Answer>[]
  isCareful: boolean
}

/** Runs a batch and says what became of each item, at its place. */
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

/**
 * Tries items again that were held, with growing pauses, until each is told otherwise or the time is over: for callers who wait for an
 * answer. Holds no connection between two tries.
 */
export async function runPatiently<Item, Answer>(
  store: Runner | Store,
  batch: Batch<Item, Answer>,
  forMs: number,
): Promise<Told<Answer>[]> {
  const untilMs = performance.now() + forMs
  let told = await runBatch(store, batch)
  for (let tries = 1; told.some(({ is }) => is === 'held') && performance.now() < untilMs; tries++) {
    await pause(Math.min(1_000, 50 * 2 ** tries))
    const open = batch.items.filter((_, index) => told[index]?.is === 'held')
    const again = (await runBatch(store, { ...batch, items: open, isWary: true })).values()
    told = told.map((one) => (one.is === 'held' ? (again.next().value as Told<Answer>) : one))
  }
  return told
}

const done = <Answer>(answer: Answer): Told<Answer> => ({ is: 'done', answer })

function boundedTo(store: Runner, mostMs: number): Runner {
  return { run: (statement, params) => store.run(statement, params, mostMs) }
}

function isNobodys(error: unknown): boolean {
  const isClosed = error instanceof HoldfastError && error.code === 'not_running'
  return isClosed || isConnectionError(error) || isOutOfResources(error)
}

/** A batch that is being taken apart. Larger parts go first: they hold the most that can be done at once. */
class Splitting<Item, Answer> {
  readonly #store: Runner | Store
  readonly #batch: Batch<Item, Answer>
  readonly #parts: Part<Item, Answer>[] = []
  #waitedMs = 0

  constructor(store: Runner | Store, batch: Batch<Item, Answer>) {
    this.#store = store
    this.#batch = batch
  }

  /** `error`: what became of all of it together, if that was tried. */
  async run(error?: unknown): Promise<Told<Answer>[]> {
    const entries: Entry<Item, Answer>[] = this.#batch.items.map((item) => ({ item }))
    if (error === undefined) this.#parts.push({ entries, isCareful: true })
    else await this.#fail({ entries, isCareful: false }, error, 0)
    for (let part = this.#parts.shift(); part; part = this.#parts.shift()) await this.#try(part)
    return entries.map(({ told }) => told as Told<Answer>)
  }

  async #try(part: Part<Item, Answer>): Promise<void> {
    const startedMs = performance.now()
    try {
      await (part.isCareful ? this.#tryCarefully(part.entries) : this.#tryPlainly(part.entries))
    } catch (error) {
      if (isNobodys(error)) throw error
      await this.#fail(part, error, performance.now() - startedMs)
    }
  }

  async #tryPlainly(entries: readonly Entry<Item, Answer>[]): Promise<void> {
    note(entries, await this.#batch.run(boundedTo(this.#store, this.#partMs), itemsOf(entries)))
  }

  /** Skips the leases that somebody holds, and waits hardly at all for whatever else may be locked. */
  async #tryCarefully(entries: readonly Entry<Item, Answer>[]): Promise<void> {
    const { held, free, answers } = await within(
      this.#store,
      async (runner) => {
        const isHeld = await this.#heldOf(runner, entries)
        const mine = entries.filter((entry) => !isHeld(entry))
        return {
          held: entries.filter(isHeld),
          free: mine,
          answers: mine.length > 0 ? await this.#batch.run(runner, itemsOf(mine)) : [],
        }
      },
      { lockMs, answerMs: this.#partMs },
    )
    note(free, answers)
    tellAll(held, { is: 'held', error: heldError(), isAlone: true })
  }

  async #heldOf(
    runner: Runner,
    entries: readonly Entry<Item, Answer>[],
  ): Promise<(entry: Entry<Item, Answer>) => boolean> {
    const { leaseOf } = this.#batch
    if (!leaseOf) return () => false
    const held = await runner.run(heldLeases, { ids: [...new Set(entries.map(({ item }) => leaseOf(item)))] })
    const ids = new Set(held.map(({ id }) => Number(id)))
    return ({ item }) => ids.has(leaseOf(item))
  }

  async #fail({ entries, isCareful }: Part<Item, Answer>, error: unknown, waitedMs: number): Promise<void> {
    const isHeld = isHeldUp(error)
    if (isHeld) this.#waitedMs += waitedMs
    if (entries.length === 1) return this.#failAlone(entries[0] as Entry<Item, Answer>, error, isHeld)
    // what is left has waited long enough, and so has whoever waits for the answers
    if (isHeld && this.#waitedMs >= this.#patienceMs) return tellAll(entries, { is: 'held', error, isAlone: false })
    // locked rows are skipped all together before anything is cut
    if (isHeld && !isCareful) return void this.#parts.push({ entries, isCareful: true })
    const size = Math.ceil(entries.length / ways)
    for (let from = 0; from < entries.length; from += size)
      this.#parts.push({ entries: entries.slice(from, from + size), isCareful: isHeld })
  }

  async #failAlone(entry: Entry<Item, Answer>, error: unknown, isHeld: boolean): Promise<void> {
    if (isHeld) entry.told = { is: 'held', error, isAlone: true }
    else if (isTaken(error, 'outcome_pkey')) entry.told = await this.#withoutTwin(entry.item, error)
    else entry.told = { is: 'refused', error }
  }

  async #withoutTwin(item: Item, refusal: unknown): Promise<Told<Answer>> {
    const { jobOf, run } = this.#batch
    if (!jobOf) return { is: 'refused', error: refusal }
    try {
      return await within(
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

/** The error of a job that was skipped: the server would say the same if it had been waited for. */
function heldError(): Error {
  return Object.assign(new Error('Another transaction holds the lease of this job locked.'), { code: '55P03' })
}
