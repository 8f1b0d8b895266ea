import { findDrained } from '../../../barrier/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { Walk } from '../../walk.ts'
import { compareLedgers } from './compare-ledgers.ts'

const batch = 200

/** Fires barriers whose parts have all arrived, but whose continuation was never submitted. */
export const fireDrained = (): Duty => {
  const walk = new Walk('', batch)
  return {
    name: 'fireDrainedOwned',
    everyMs: 2_000,
    async run(store) {
      const found = await walk.next((page) => store.run(findDrained, page))
      const compared = await compareLedgers(store, found)
      return { ...compared, isFull: found.length === batch && compared.healed.length > 0 }
    },
  }
}
