import { HoldfastError } from '../errors/errors.ts'
import { parentOf } from '../fan-out/fan-out.sql.ts'
import type { Runner } from '../postgres/store.ts'

/** The job that an item belongs to, with its stored input. */
export interface Parent {
  id: string
  input: string
}

const most = 200
const mostChars = 16_000_000

/** A cache of the jobs whose items run here. Each is read once for all its items, and the oldest are evicted. */
export class Parents {
  readonly #store: Runner
  readonly #known = new Map<string, Promise<Parent>>()
  readonly #sizes = new Map<string, number>()

  constructor(store: Runner) {
    this.#store = store
  }

  /** The job that opened this barrier. */
  of(barrierId: string): Promise<Parent> {
    const known = this.#known.get(barrierId)
    if (known) return known
    const asked = this.#read(barrierId)
    this.#known.set(barrierId, asked)
    asked.then(
      ({ input }) => this.#keep(barrierId, input.length),
      () => this.#forget(barrierId),
    )
    return asked
  }

  async #read(barrierId: string): Promise<Parent> {
    const [row] = await this.#store.run(parentOf, { barrierId })
    if (row?.input) return { id: row.id, input: row.input }
    throw new HoldfastError('job_not_found', 'The parent job of this item, or its stored input, no longer exists.')
  }

  #keep(barrierId: string, chars: number): void {
    this.#sizes.set(barrierId, chars)
    let sum = 0
    for (const size of this.#sizes.values()) sum += size
    for (const [oldest, size] of this.#sizes) {
      if (this.#sizes.size <= most && sum <= mostChars) return
      sum -= size
      this.#forget(oldest)
    }
  }

  #forget(barrierId: string): void {
    this.#known.delete(barrierId)
    this.#sizes.delete(barrierId)
  }
}
