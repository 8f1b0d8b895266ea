import { takeOverdue } from '../../../barrier/heal.sql.ts'
import type { Owner } from '../../../barrier/owner.ts'
import type { Store } from '../../../postgres/store.ts'
import { type Duty, report } from '../../duty.ts'
import { settleExpired } from './settle-expired.ts'

/** What it takes to ask owners. */
export interface Asking {
  /** A store of its own: a barrier stays locked while its owner marks the execution, and a slow owner must not use up the shared connections. */
  store: Store
  owners: Readonly<Record<string, Owner>>
  timeoutMs: number
}

const batch = 50
/** After this many failures in a row the owner is to blame, not a row. The rest waits for the next run. */
const enough = 3

/**
 * Asks one owner about its expired barriers. Every process that has the owner configured runs this, leader or not: each takes a barrier by
 * its row, so only one of them asks about it.
 */
export function askOwner({ store, owners, timeoutMs }: Asking, name: string): Duty {
  const owner = owners[name] as Owner
  return {
    name: 'askOwner',
    everyMs: 0,
    isAnyones: true,
    async run(_store, signal = new AbortController().signal) {
      const all = report({})
      const askedAbout = new Set<string>()
      for (let asked = 0, failures = 0; asked < batch && failures < enough && !signal.aborted; asked++) {
        const [row] = await store.run(takeOverdue, { owner: name })
        // an owner that answers more slowly than barriers come due again would otherwise be asked without end
        if (!row || askedAbout.has(row.id)) return all
        askedAbout.add(row.id)
        const one = await settleExpired({ store, owner, row, timeoutMs, signal })
        all.healed.push(...one.healed)
        all.skipped.push(...one.skipped)
        all.failed.push(...one.failed)
        failures = one.failed.length > 0 ? failures + 1 : 0
      }
      return { ...all, isFull: all.healed.length > 0 }
    },
  }
}
