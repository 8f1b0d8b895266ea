import { closeAbandoned, findUnstopped } from '../../../fan-out/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { batch, healMs, namesOf } from './healing.ts'
import { Stopper } from './stop-each.ts'

/** Cancels the live items of fan-outs that were stopped, or whose job has ended. */
export const stopUnstopped = (): Duty => {
  const stopper = new Stopper()
  return {
    name: 'stopUnstopped',
    everyMs: 0,
    async run(store) {
      const rows = await store.run(findUnstopped, { limit: batch })
      const all = await stopper.stop(store, rows, (row, cancelled) => ({
        ...namesOf(row),
        orphan: row.is_abandoned ? 'fan-out-abandoned' : 'stop-unfinished',
        message: `${cancelled.length} items were still live; cancelled`,
      }))
      await store.run(closeAbandoned, { limit: batch }, healMs)
      return all
    },
  }
}
