import { findUnchecked } from '../../../barrier/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { compareLedgers } from './compare-ledgers.ts'

const batch = 200
const quietMs = 5_000

/** Recounts quiet barriers, those first that have not been compared with their ledger for the longest time. */
export const recountOwned: Duty = {
  name: 'recountOwned',
  everyMs: 10_000,
  run: async (store) => compareLedgers(store, await store.run(findUnchecked, { quietMs, limit: batch })),
}
