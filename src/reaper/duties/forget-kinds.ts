import { type Duty, report } from '../duty.ts'
import { forgetKinds, refreshKinds } from '../kind.sql.ts'

const batch = 500
const hour = 3_600_000

/** Removes kinds that no worker has served for that long. Kinds that are served are marked as seen first. */
export function forgetOldKinds(olderThanMs: number): Duty {
  return {
    name: 'forgetKinds',
    everyMs: 60_000,
    async run(store) {
      const kept = await store.run(refreshKinds, { olderThanMs: hour, limit: batch })
      const gone = await store.run(forgetKinds, { olderThanMs, limit: batch })
      return report({ isFull: kept.length === batch || gone.length === batch })
    },
  }
}
