import { type Duty, report } from '../duty.ts'
import { forgetUniqueKeys } from '../unique.sql.ts'

const batch = 500

/** Removes unique keys whose window is over. */
export const forgetUnique: Duty = {
  name: 'forgetUnique',
  everyMs: 10_000,
  async run(store) {
    const gone = await store.run(forgetUniqueKeys, { limit: batch })
    return report({ isFull: gone.length === batch })
  },
}
