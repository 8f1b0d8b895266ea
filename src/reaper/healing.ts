import { isHeldUp, isPassing } from '../store/connection.ts'
import type { Statement } from '../store/sql.ts'
import type { Runner } from '../store/store.ts'
import type { DutyReport, FailedRow, Healed } from './duties.ts'
import { moveEach } from './move-each.ts'
import { report } from './report.ts'

/** How long the statement of a duty may take before it is taken apart: it waits for nobody, unless a stranger holds a row that it needs. */
export const healMs = 2_000
/** A ledger of a million items takes its time. */
const apart = { answerMs: 15_000, patienceMs: 30_000 }
/** For how long after a trouble what is to be healed is taken apart from the start. */
const waryMs = 30_000
const batch = 100
const mostCandidates = 1_000

interface Candidate {
  id: string
  job_id: string
}

/** How a duty heals what it finds by itself, or of these only, and where to look if that fails as a whole. */
interface Healing<Row extends { id: string }> {
  heal: (runner: Runner, only?: string[]) => Promise<Row[]>
  find: Statement<{ after: string; limit: number }, Candidate>
  tell: (row: Row) => Healed
  /** Whether the next turn of the duty is soon enough for the rest. */
  isOnce?: boolean
}

/** Makes the run of a duty that finds and heals in one statement. If one bad or locked row spoils that, all that may need it is healed apart. */
export function healing<Row extends { id: string }>(given: Healing<Row>): (store: Runner) => Promise<DutyReport> {
  let waryUntilMs = Number.NEGATIVE_INFINITY
  let after = ''
  return async (store) => {
    if (performance.now() >= waryUntilMs) {
      try {
        const rows = await given.heal({ run: (statement, params) => store.run(statement, params, healMs) })
        return report({ healed: rows.map(given.tell), isFull: !given.isOnce && rows.length === batch })
      } catch (error) {
        if (isPassing(error) && !isHeldUp(error)) throw error
        waryUntilMs = performance.now() + waryMs
      }
    }
    const found = await store.run(given.find, { after: after || nil, limit: mostCandidates })
    after = found.length === mostCandidates ? (found.at(-1)?.id ?? '') : ''
    const rows = found.map((row) => ({ ...row, lost_ms: 0 }))
    const { done, failed, held } = await moveEach(
      store,
      rows,
      (runner, some) =>
        given.heal(
          runner,
          some.map(({ id }) => id),
        ),
      undefined,
      apart,
    )
    const barriers = (of: FailedRow[]) => of.map((row) => failedOf(row, row.error))
    return report({ healed: done.map(given.tell), failed: barriers(failed), held: barriers(held) })
  }
}

const nil = '00000000-0000-0000-0000-000000000000'

/** A barrier that could not be healed. */
export function failedOf({ id }: { id: string }, error: unknown): FailedRow {
  return { id, lost_ms: 0, error, isBarrier: true }
}
