import { isHeldUp } from '../postgres/connection.ts'
import type { Page } from '../postgres/page.ts'
import type { Statement } from '../postgres/sql.ts'
import type { Runner } from '../postgres/store.ts'
import { isNobodys, runBatch, type Told } from '../transitions/batch.ts'
import { Walk } from './walk.ts'

/** Rows that one statement handles together. */
export interface Handling<Key, Row> {
  /** Lists the ids of the rows that it may handle. It reads nothing else, so no row makes it fail. */
  list: Statement<Page<Key>, { id: Key }>
  /** Comes before all ids. */
  start: Key
  /** The id of the row that an answer is about. */
  idOf: (row: Row) => Key
  /** How long the statement may take before rows are handled one by one. Default: as long as any statement; then they are not. */
  togetherMs?: number
  /** Bounds of handling them one by one. */
  bounds?: { answerMs: number; patienceMs: number }
}

/** A row that could not be handled, and why. */
export interface Bad<Key> {
  id: Key
  error: unknown
}

/** What became of rows. */
export interface Handled<Key, Row> {
  rows: Row[]
  failed: Bad<Key>[]
  held: Bad<Key>[]
}

/** How long after a failure rows are handled one by one from the start. */
const waryMs = 30_000
/** How long a bad row is left alone. There may be more of them than one run finds. */
const restMs = 60_000
const mostListed = 1_000
const usualBounds = { answerMs: 2_000, patienceMs: 2_000 }
const mostRefused = 500

/**
 * Handles rows together, or one by one if a bad row spoils that: one that can't be read, is refused, or takes too long. If the statement fails
 * without any row, no row is to blame, and its error is thrown.
 */
export class RowByRow<Key, Row> {
  readonly #how: Handling<Key, Row>
  readonly #walk: Walk<Key>
  #waryUntilMs = Number.NEGATIVE_INFINITY
  /** Until when each bad row is left alone. */
  readonly #rests = new Map<Key, number>()

  constructor(how: Handling<Key, Row>) {
    this.#how = how
    this.#walk = new Walk(how.start, mostListed)
  }

  /** `handle`: handles what it finds, or only these. */
  async run(store: Runner, handle: (runner: Runner, only?: Key[]) => Promise<Row[]>): Promise<Handled<Key, Row>> {
    if (performance.now() < this.#waryUntilMs) return this.#apart(store, handle)
    const { togetherMs } = this.#how
    const bounded: Runner = { run: (statement, params) => store.run(statement, params, togetherMs) }
    try {
      return { rows: await handle(bounded), failed: [], held: [] }
    } catch (error) {
      if (isNobodys(error) || (isHeldUp(error) && togetherMs === undefined)) throw error
      await handle(bounded, []).catch(() => Promise.reject(error))
      this.#waryUntilMs = performance.now() + waryMs
      return this.#apart(store, handle)
    }
  }

  async #apart(store: Runner, handle: (runner: Runner, only: Key[]) => Promise<Row[]>): Promise<Handled<Key, Row>> {
    const { list, idOf, bounds = usualBounds } = this.#how
    const listed = (await this.#walk.next((page) => store.run(list, page))).map(({ id }) => id)
    const ids = this.#awake(listed)
    const told = await runBatch(store, {
      items: ids,
      isWary: true,
      mostRefused,
      ...bounds,
      async run(runner, some) {
        const rows = await handle(runner, some)
        return some.map((id) => rows.filter((row) => idOf(row) === id))
      },
    })
    const handled = handledOf(ids, told)
    for (const { id } of handled.failed) this.#rests.set(id, performance.now() + restMs)
    return handled
  }

  #awake(ids: Key[]): Key[] {
    const nowMs = performance.now()
    for (const [id, untilMs] of this.#rests) if (untilMs <= nowMs) this.#rests.delete(id)
    return ids.filter((id) => !this.#rests.has(id))
  }
}

function handledOf<Key, Row>(ids: readonly Key[], told: readonly Told<Row[]>[]): Handled<Key, Row> {
  const all: Handled<Key, Row> = { rows: [], failed: [], held: [] }
  for (const [index, one] of told.entries())
    if (one.is === 'done') all.rows.push(...one.answer)
    else all[one.is === 'held' ? 'held' : 'failed'].push({ id: ids[index] as Key, error: one.error })
  return all
}
