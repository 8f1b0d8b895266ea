import { dueParked, postponeParked } from '../settle/park.sql.ts'
import { unpark } from '../settle/park.ts'
import { isHeldUp, isPassing } from '../store/connection.ts'
import type { Duty, DutyReport } from './duties.ts'
import { report } from './report.ts'

const batch = 50

/** Tries to write parked outcomes again. Each waits twice as long after every refusal. */
export const settleParked: Duty = {
  name: 'settleParked',
  everyMs: 500,
  async run(store) {
    const rows = await store.run(dueParked, { limit: batch })
    const all: DutyReport = report({})
    for (const row of rows) {
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
    const refused = all.failed.map(({ id }) => id)
    if (refused.length > 0) await store.run(postponeParked, { ids: refused })
    return { ...all, isFull: rows.length === batch }
  },
}
