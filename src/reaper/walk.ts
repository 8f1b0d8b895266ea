import type { Page } from '../postgres/page.ts'

/**
 * A walk over rows in the order of their ids, some at a time. At the end it starts over. So rows that can't be handled, because they are
 * locked or refused, hide none of those behind them, however many there are.
 */
export class Walk<Key> {
  readonly #start: Key
  readonly #limit: number
  #after: Key

  /** `start`: comes before all ids. `limit`: how many rows are found at a time. */
  constructor(start: Key, limit: number) {
    this.#start = start
    this.#limit = limit
    this.#after = start
  }

  /** The next rows; none if there are none at all. */
  async next<Row extends { id: Key }>(find: (page: Page<Key>) => Promise<Row[]>): Promise<Row[]> {
    const isFromStart = this.#after === this.#start
    const rows = await find({ after: this.#after, limit: this.#limit })
    const last = rows.at(-1)
    this.#after = last && rows.length >= this.#limit ? last.id : this.#start
    return last || isFromStart ? rows : this.next(find)
  }

  /** Continues behind this row: those after it were found, but not reached. */
  continueAfter({ id }: { id: Key }): void {
    this.#after = id
  }
}
