import { isHeldUp, isPassing } from '../../postgres/connection.ts'
import type { Runner } from '../../postgres/store.ts'
import { dueParked, postponeParked } from '../../settle/park.sql.ts'
import { unpark } from '../../settle/park.ts'
import { type Duty, type DutyReport, type FailedRow, type Note, report } from '../duty.ts'

const batch = 50
/** The longest that one run may take: it is part of a sweep, and other orphans wait to be revived. Rows that it does not reach stay due. */
const mostMs = 1_000

/** Retries writing parked outcomes. The wait of each doubles with every refusal. */
export const settleParked: Duty = {
  name: 'settleParked',
  everyMs: 500,
  async run(store) {
    const untilMs = performance.now() + mostMs
    const rows = await store.run(dueParked, { limit: batch })
    const all: DutyReport = report({})
    for (const row of rows) {
      if (performance.now() >= untilMs) break
      try {
        if ((await unpark(store, row)) === 'written') all.notes.push(wrote(row.job_id))
      } catch (error) {
        if (isPassing(error) && !isHeldUp(error)) throw error
        all[isHeldUp(error) ? 'held' : 'failed'].push({
          id: row.job_id,
          lost_ms: row.lost_ms,
          error,
          orphan: 'outcome-refused',
        })
      }
    }
    await postpone(store, all.failed, false)
    await postpone(store, all.held, true)
    // a held row may be locked against the postponement as well, so only written rows may keep the sweep going
    return { ...all, isFull: rows.length === batch && all.notes.length > 0 }
  },
}

function wrote(job: string): Note {
  return { isError: false, facts: { job, orphan: 'outcome-refused' }, message: 'wrote a parked outcome' }
}

async function postpone(store: Runner, rows: readonly FailedRow[], isHeld: boolean): Promise<void> {
  if (rows.length > 0) await store.run(postponeParked, { ids: rows.map(({ id }) => id), isHeld })
}
