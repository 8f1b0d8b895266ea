import {
  type ComparedRow,
  closeUnowned,
  compareOwned,
  findDrained,
  findUnchecked,
  findUnowned,
  forgetEnds,
  forgetOwned,
} from '../barrier/owned-heal.sql.ts'
import { isComplete } from '../job/fan-out.ts'
import type { Runner } from '../store/store.ts'
import type { Duty, DutyReport, Healed } from './duties.ts'
import { moveEach } from './move-each.ts'
import { report } from './report.ts'

const batch = 200
const day = 86_400_000

const fireDrained: Duty = {
  name: 'fireDrainedOwned',
  everyMs: 2_000,
  async run(store) {
    const found = await store.run(findDrained, { limit: batch })
    const compared = await compare(store, found)
    return { ...compared, isFull: found.length === batch && compared.healed.length > 0 }
  },
}

const recount: Duty = {
  name: 'recountOwned',
  everyMs: 10_000,
  run: async (store) => compare(store, await store.run(findUnchecked, { quietMs: 5_000, limit: batch })),
}

const expireUnowned: Duty = {
  name: 'expireUnowned',
  everyMs: 0,
  async run(store) {
    const found = await store.run(findUnowned, { limit: batch })
    const compared = await compare(store, found)
    const { done, failed, held } = await moveEach(store, found, (runner, rows) =>
      runner.run(closeUnowned, { ids: rows.map(({ id }) => id) }),
    )
    const closed = done.map(
      (row): Healed => ({
        barrier: row.id,
        orphan: 'owned-expired',
        message: `expired with ${workLeft(row)}; it has no owner to tell, so it was closed`,
      }),
    )
    const healed = [...compared.healed, ...closed]
    return report({
      healed,
      failed: [...compared.failed, ...failed.map((row) => ({ ...row, isBarrier: true as const }))],
      held: [...compared.held, ...held.map((row) => ({ ...row, isBarrier: true as const }))],
      isFull: found.length === batch && healed.length > 0,
    })
  },
}

const forget: Duty = {
  name: 'forgetOwned',
  everyMs: 60_000,
  async run(store) {
    const old = { olderThanMs: 7 * day, limit: batch }
    const gone = await store.run(forgetOwned, old)
    const ends = await store.run(forgetEnds, old)
    return report({ isFull: gone.length === batch || ends.length === batch })
  },
}

/** The duties of barriers whose executions others own, as far as nobody else must be asked. */
export const ownedDuties: readonly Duty[] = [fireDrained, expireUnowned, recount, forget]

/** Compares barriers with their ledgers: counts are put right, and what is complete is fired. */
export async function compare(store: Runner, found: readonly { id: string; lost_ms: number }[]): Promise<DutyReport> {
  const { done, failed, held } = await moveEach(store, found, (runner, rows) =>
    runner.run(compareOwned, { ids: rows.map(({ id }) => id) }),
  )
  return report({
    healed: done.flatMap((row) => healedOf(row) ?? []),
    failed: failed.map((row) => ({ ...row, isBarrier: true })),
    held: held.map((row) => ({ ...row, isBarrier: true })),
  })
}

/** What was wrong with a barrier, if anything: different troubles have different messages. */
function healedOf(row: ComparedRow): Healed | undefined {
  const names = { barrier: row.id, ...(row.is_fired ? { job: row.job_id } : {}) }
  const late = row.was_overdue ? ', past its expiry' : ''
  const fired = row.is_fired ? ', and the continuation was fired' : ''
  if (isComplete({ total: row.total, settled: row.was }) === 'unknown')
    return {
      ...names,
      orphan: 'owned-negative-count',
      message: `its count of arrived parts was negative (${row.was})${late}; counted anew by the ledger${fired}`,
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
    message: `its count said ${row.was} and its ledger ${row.arrived}; counted anew by the ledger`,
  }
}

/** What is left of a barrier, in words. */
export function workLeft({ total, arrived }: { total: number; arrived: number }): string {
  return `work left: ${total - arrived} of ${total} parts have not arrived`
}
