import { takeParked } from '../settle/park.sql.ts'
import { unpark } from '../settle/park.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Duty, DutyReport } from './duties.ts'
import { report } from './report.ts'

const batch = 50

/** Tries to write parked outcomes again. Each waits twice as long after every refusal. */
export const settleParked: Duty = {
  name: 'settleParked',
  everyMs: 2_000,
  async run(store) {
    const rows = await store.run(takeParked, { limit: batch })
    const all: DutyReport = report({ isFull: rows.length === batch })
    for (const row of rows) {
      try {
        if ((await unpark(store, row)) === 'written')
          all.notes.push({
            isError: false,
            facts: { job: row.job_id, orphan: 'outcome-refused' },
            message: 'a parked outcome was written',
          })
      } catch (error) {
        if (isConnectionError(error)) throw error
        all.failed.push({ id: row.job_id, lost_ms: row.lost_ms, error, orphan: 'outcome-refused' })
      }
    }
    return all
  },
}
