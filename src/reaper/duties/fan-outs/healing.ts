import { isHeldUp, isPassing } from '../../../postgres/connection.ts'
import type { Statement } from '../../../postgres/sql.ts'
import type { Runner } from '../../../postgres/store.ts'
import { type Duty, type DutyReport, type FailedRow, type Healed, report } from '../../duty.ts'
import { moveEach } from '../../move-each.ts'

/** The most barriers that one statement heals. */
export const batch = 100
/** How long the statement of a duty may take before rows are healed one by one. It waits for nothing but rows that someone else has locked. */
export const healMs = 2_000
/** A ledger of a million items takes a while. */
const apart = { answerMs: 15_000, patienceMs: 30_000 }
/** How long after a failure rows are healed one by one from the start. */
const waryMs = 30_000
const mostCandidates = 1_000
const nil = '00000000-0000-0000-0000-000000000000'

/** A duty that finds and heals rows in one statement. */
interface Healing<Row extends { id: string }> {
  name: string
  everyMs: number
  /** Heals what it finds, or only these. */
  heal: (runner: Runner, only?: string[]) => Promise<Row[]>
  /** Finds the rows that may need it, for when healing them together fails. */
  find: Statement<{ after: string; limit: number }, { id: string; job_id: string }>
  tell: (row: Row) => Healed
  /** Whether the rest of a full batch can wait for the next run. */
  isOnce?: boolean
}

/** Makes a duty that heals rows together, or one by one if a bad or locked row spoils that. */
export function healingDuty<Row extends { id: string }>(healing: Healing<Row>): Duty {
  const healer = new Healer(healing)
  return { name: healing.name, everyMs: healing.everyMs, run: (store) => healer.run(store) }
}

class Healer<Row extends { id: string }> {
  readonly #healing: Healing<Row>
  #waryUntilMs = Number.NEGATIVE_INFINITY
  /** Where the next walk over the candidates starts. */
  #after = nil

  constructor(healing: Healing<Row>) {
    this.#healing = healing
  }

  async run(store: Runner): Promise<DutyReport> {
    if (performance.now() < this.#waryUntilMs) return this.#healApart(store)
    try {
      return await this.#healTogether(store)
    } catch (error) {
      if (isPassing(error) && !isHeldUp(error)) throw error
      this.#waryUntilMs = performance.now() + waryMs
      return this.#healApart(store)
    }
  }

  async #healTogether(store: Runner): Promise<DutyReport> {
    const { heal, tell, isOnce } = this.#healing
    const rows = await heal({ run: (statement, params) => store.run(statement, params, healMs) })
    return report({ healed: rows.map(tell), isFull: !isOnce && rows.length === batch })
  }

  async #healApart(store: Runner): Promise<DutyReport> {
    const { heal, tell } = this.#healing
    const { done, failed, held } = await moveEach(
      store,
      await this.#candidates(store),
      (runner, rows) =>
        heal(
          runner,
          rows.map(({ id }) => id),
        ),
      undefined,
      apart,
    )
    const barriers = (of: FailedRow[]) => of.map((row) => failedOf(row, row.error))
    return report({ healed: done.map(tell), failed: barriers(failed), held: barriers(held) })
  }

  async #candidates(store: Runner): Promise<{ id: string; lost_ms: number }[]> {
    const found = await store.run(this.#healing.find, { after: this.#after, limit: mostCandidates })
    this.#after = found.length === mostCandidates ? (found.at(-1)?.id ?? nil) : nil
    return found.map(({ id }) => ({ id, lost_ms: 0 }))
  }
}

/** A barrier that could not be healed. */
export function failedOf({ id }: { id: string }, error: unknown): FailedRow {
  return { id, lost_ms: 0, error, isBarrier: true }
}

/** The barrier and job of a healed row, as a report names them. */
export function namesOf({ id, job_id }: { id: string; job_id: string }): { barrier: string; job: string } {
  return { barrier: id, job: job_id }
}
