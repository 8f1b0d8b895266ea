import { dueParked, postponeParked } from '../settle/park.sql.ts'
import { unpark } from '../settle/park.ts'
import { isHeldUp, isPassing } from '../store/connection.ts'
import type { Runner } from '../store/store.ts'
import type { Duty, DutyReport, FailedRow } from './duties.ts'
import { report } from './report.ts'

const batch = 50
/** How long one run may take: it is part of a sweep, and others wait to be revived. What it did not come to is still due. */
const mostMs = 2_000

/** Tries to write parked outcomes again. Each waits twice as long after every refusal. */
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
        if ((await unpark(store, row)) === 'written')
          all.notes.push({
            isError: false,
            facts: { job: row.job_id, orphan: 'outcome-refused' },
            message: 'a parked outcome was written',
          })
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
    // what somebody holds is put off only if nobody holds that, too, so it must not keep the sweep spinning
    return { ...all, isFull: rows.length === batch && all.notes.length > 0 }
  },
}

async function postpone(store: Runner, rows: readonly FailedRow[], isHeld: boolean): Promise<void> {
  if (rows.length > 0) await store.run(postponeParked, { ids: rows.map(({ id }) => id), isHeld })
}
