import { closeUnowned, findUnowned } from '../../../barrier/heal.sql.ts'
import { type Duty, type Healed, report } from '../../duty.ts'
import { moveEach } from '../../move-each.ts'
import { Walk } from '../../walk.ts'
import { asBarrier, compareLedgers, workLeft } from './compare-ledgers.ts'

const batch = 200

/** Closes expired barriers that have no owner to notify. */
export const expireUnowned = (): Duty => {
  const walk = new Walk('', batch)
  return {
    name: 'expireUnowned',
    everyMs: 0,
    async run(store) {
      const found = await walk.next((page) => store.run(findUnowned, page))
      const compared = await compareLedgers(store, found)
      const { done, failed, held } = await moveEach(store, found, (runner, rows) =>
        runner.run(closeUnowned, { ids: rows.map(({ id }) => id) }),
      )
      const healed = [...compared.healed, ...done.map(closed)]
      return report({
        healed,
        failed: [...compared.failed, ...failed.map(asBarrier)],
        held: [...compared.held, ...held.map(asBarrier)],
        isFull: found.length === batch && healed.length > 0,
      })
    },
  }
}

function closed(row: { id: string; total: number; arrived: number }): Healed {
  return {
    barrier: row.id,
    orphan: 'owned-expired',
    message: `expired with ${workLeft(row)}; it has no owner to notify, so it was closed`,
  }
}
