import { layPartitions } from '../../events/groups.sql.ts'
import { type Duty, report } from '../duty.ts'
import type { Retention } from './drop-log.ts'

const hour = 3_600_000
const day = 24 * hour
/** How many partitions cover the retention time. A partition is dropped as a whole, so events outlive their retention by up to one of these. */
const slices = 10

/** Creates the partitions of the event log at least a day ahead. */
export function layLog({ retentionMs }: Retention): Duty {
  const spanMs = Math.max(hour, retentionMs / slices)
  return {
    name: 'layLog',
    everyMs: 60_000,
    async run(store) {
      await store.run(layPartitions, { spanMs, aheadMs: Math.max(day, spanMs) })
      return report({})
    },
  }
}
