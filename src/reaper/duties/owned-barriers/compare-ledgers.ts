import { type ComparedRow, compareOwned } from '../../../barrier/heal.sql.ts'
import { isComplete } from '../../../job/fan-out.ts'
import type { Runner } from '../../../postgres/store.ts'
import { type DutyReport, type FailedRow, type Healed, report } from '../../duty.ts'
import { moveEach } from '../../move-each.ts'

/** Compares barriers with their ledgers: corrects their counts, and fires those that are complete. */
export async function compareLedgers(
  store: Runner,
  found: readonly { id: string; lost_ms: number }[],
): Promise<DutyReport> {
  const { done, failed, held } = await moveEach(store, found, (runner, rows) =>
    runner.run(compareOwned, { ids: rows.map(({ id }) => id) }),
  )
  return report({
    healed: done.flatMap((row) => healedOf(row) ?? []),
    failed: failed.map(asBarrier),
    held: held.map(asBarrier),
  })
}

/** Says what was wrong with a barrier, if anything: different problems have different messages. */
function healedOf(row: ComparedRow): Healed | undefined {
  const names = { barrier: row.id, ...(row.is_fired ? { job: row.job_id } : {}) }
  const late = row.was_overdue ? ', past its expiry' : ''
  const fired = row.is_fired ? ', and the continuation was fired' : ''
  if (isComplete({ total: row.total, settled: row.was }) === 'unknown')
    return {
      ...names,
      orphan: 'owned-negative-count',
      message: `its count of arrived parts was negative (${row.was})${late}; recounted from the ledger${fired}`,
    }
  if (row.is_fired)
    return {
      ...names,
      orphan: 'owned-drained-not-fired',
      message: `all parts had arrived${late}, but the continuation had never fired; fired`,
    }
  if (row.was === row.arrived) return undefined
  return {
    ...names,
    orphan: 'owned-counter-drift',
    message: `its count was ${row.was}, but its ledger has ${row.arrived}; recounted from the ledger`,
  }
}

/** Marks a row that could not be moved as a barrier. */
export function asBarrier(row: FailedRow): FailedRow {
  return { ...row, isBarrier: true }
}

/** The parts that a barrier still misses, in words. */
export function workLeft({ total, arrived }: { total: number; arrived: number }): string {
  return `missing parts: ${total - arrived} of ${total} parts have not arrived`
}
