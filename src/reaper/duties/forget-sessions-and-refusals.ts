import { type Duty, report } from '../duty.ts'
import { forgetRefusals, forgetSessions } from '../session.sql.ts'

const batch = 500
const day = 86_400_000

/** Removes sessions that ended a day ago, and refused writes of a week ago. Both are kept that long only for diagnosis. */
export const forgetSessionsAndRefusals: Duty = {
  name: 'forget',
  everyMs: 60_000,
  async run(store) {
    const sessions = await store.run(forgetSessions, { olderThanMs: day, limit: batch })
    const refusals = await store.run(forgetRefusals, { olderThanMs: 7 * day, limit: batch })
    return report({ isFull: sessions.length === batch || refusals.length === batch })
  },
}
