import type { Duty } from './duties.ts'
import { forgetKinds, refreshKinds } from './kind.sql.ts'
import { report } from './report.ts'

const batch = 500
const hour = 3_600_000

/** Keeps the kinds that are served, and forgets those that nobody has served for so long. */
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
