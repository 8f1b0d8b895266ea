import { findOrphanItems } from '../../../fan-out/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { batch } from './healing.ts'
import { Stopper } from './stop-each.ts'

/** Cancels items whose barrier is gone. */
export const stopOrphanItems = (): Duty => {
  const stopper = new Stopper()
  return {
    name: 'stopOrphanItems',
    everyMs: 0,
    async run(store) {
      const rows = await store.run(findOrphanItems, { limit: batch })
      return stopper.stop(store, rows, ({ id }, cancelled) => ({
        barrier: id,
        job: cancelled[0]?.id ?? id,
        orphan: 'item-without-barrier',
        message: `${cancelled.length} items no longer had a barrier; cancelled`,
      }))
    },
  }
}
