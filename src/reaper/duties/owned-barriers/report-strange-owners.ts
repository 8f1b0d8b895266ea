import { findStrange } from '../../../barrier/heal.sql.ts'
import { HoldfastError } from '../../../errors/errors.ts'
import type { Store } from '../../../postgres/store.ts'
import { type Duty, report } from '../../duty.ts'
import { failedOf } from './settle-expired.ts'

const batch = 50
/** By this time after its expiry, some process that has the owner configured would have asked it, if there were one. */
const graceMs = 10_000

/** Reports expired barriers whose owner is not configured in any process. */
export function reportStrangeOwners(store: Store, owners: readonly string[]): Duty {
  return {
    name: 'reportStrangeOwners',
    everyMs: 60_000,
    async run() {
      const rows = await store.run(findStrange, { owners, graceMs, limit: batch })
      return report({ failed: rows.map((row) => failedOf(row, 'owner-unknown', ownerUnknown(row.owner))) })
    },
  }
}

function ownerUnknown(owner: string): HoldfastError {
  return new HoldfastError(
    'owner_unknown',
    `The owner ${JSON.stringify(owner)} is not configured in any process that runs a worker or reaper; add it to connect({ owners }), or to the module of \`--owners-module\`.`,
  )
}
