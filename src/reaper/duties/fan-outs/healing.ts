import { lowestId } from '../../../job/id.ts'
import type { Page } from '../../../postgres/page.ts'
import type { Statement } from '../../../postgres/sql.ts'
import type { Runner } from '../../../postgres/store.ts'
import { type Duty, type FailedRow, type Healed, report } from '../../duty.ts'
import { type Bad, RowByRow } from '../../row-by-row.ts'

/** The most barriers that one statement heals. */
export const batch = 100
/** How long the statement of a duty may take before rows are healed one by one. It waits for nothing but rows that someone else has locked. */
export const healMs = 2_000
/** A ledger of a million items takes a while. */
const bounds = { answerMs: 15_000, patienceMs: 30_000 }

/** A duty that finds and heals rows in one statement. */
interface Healing<Row extends { id: string }> {
  name: string
  everyMs: number
  /** Heals what it finds, or only these. */
  heal: (runner: Runner, only?: string[]) => Promise<Row[]>
  /** Finds the rows that may need it, for when healing them together fails. */
  find: Statement<Page<string>, { id: string; job_id: string }>
  /** Says what was wrong with a row, if anything. */
  tell: (row: Row) => Healed | undefined
  /** Whether the rest of a full batch can wait for the next run. */
  isOnce?: boolean
}

/** Makes a duty that heals rows together, or one by one if a bad or locked row spoils that. */
export function healingDuty<Row extends { id: string }>({
  name,
  everyMs,
  heal,
  find,
  tell,
  isOnce,
}: Healing<Row>): Duty {
  const healer = new RowByRow<string, Row>({
    list: find,
    start: lowestId,
    idOf: ({ id }) => id,
    togetherMs: healMs,
    bounds,
  })
  return {
    name,
    everyMs,
    async run(store) {
      const { rows, failed, held } = await healer.run(store, heal)
      return report({
        healed: rows.flatMap((row) => tell(row) ?? []),
        failed: failed.map(failedOf),
        held: held.map(failedOf),
        isFull: !isOnce && rows.length === batch,
      })
    },
  }
}

/** A barrier that could not be healed. */
export function failedOf({ id, error }: Bad<string>): FailedRow {
  return { id, lost_ms: 0, error, isBarrier: true }
}

/** The barrier and job of a healed row, as a report names them. */
export function namesOf({ id, job_id }: { id: string; job_id: string }): { barrier: string; job: string } {
  return { barrier: id, job: job_id }
}
