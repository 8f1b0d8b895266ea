import { forgetEnds, forgetOwned } from '../../../barrier/heal.sql.ts'
import { type Duty, report } from '../../duty.ts'

const batch = 200
const week = 7 * 86_400_000

/** Removes barriers that fired or expired a week ago, and the records of how barriers ended. */
export const forgetOwnedBarriers: Duty = {
  name: 'forgetOwned',
  everyMs: 60_000,
  async run(store) {
    const old = { olderThanMs: week, limit: batch }
    const gone = await store.run(forgetOwned, old)
    const ends = await store.run(forgetEnds, old)
    return report({ isFull: gone.length === batch || ends.length === batch })
  },
}
