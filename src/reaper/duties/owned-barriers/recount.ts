import { findUnchecked } from '../../../barrier/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { Walk } from '../../walk.ts'
import { compareLedgers } from './compare-ledgers.ts'

const batch = 200
const quietMs = 5_000

/** Recounts quiet barriers. It walks over all of them, some in each run. */
export const recountOwned = (): Duty => {
  const walk = new Walk('', batch)
  return {
    name: 'recountOwned',
    everyMs: 10_000,
    run: async (store) =>
      compareLedgers(store, await walk.next((page) => store.run(findUnchecked, { quietMs, ...page }))),
  }
}
