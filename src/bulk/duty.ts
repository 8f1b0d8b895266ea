import { hostname } from 'node:os'
import type { Config } from '../config/config.ts'
import type { Store } from '../postgres/store.ts'
import { type Duty, report } from '../reaper/duty.ts'
import { type BulkObserver, carryOn } from './carry-on.ts'

/**
 * Carries on bulk operations, beside the sweep. Every process with a reaper does so, not only the leader: the rows decide which process has
 * which operation.
 */
export function carryingOn({
  store,
  config,
  observer,
}: {
  store: Store
  config: Config
  observer: BulkObserver
}): Duty {
  const holder = `${hostname()}:${process.pid}`
  const options = { store, observer, holder, leaseMs: config.leaseMs, keysMs: config.keepKeysMs }
  return {
    name: 'carryOnBulk',
    everyMs: 500,
    isAnyones: true,
    run: async (_store, signal) => report({ isFull: await carryOn(options, signal) }),
  }
}
