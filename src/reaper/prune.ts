/**
 * Retention: finished jobs are removed once they have been kept for long enough.
 *
 * The invariant: a job is removed with everything that belongs to it, in one transaction, or it stays whole; only the items of a fan-out
 * follow in later batches. The row in `outcome` decides a race against a redo: see src/transitions/leases.sql.ts. A walk never passes an
 * outcome that may still appear (src/events/horizon.ts), or one that a group of readers has not read.
 */
import type { Config } from '../config/config.ts'
import type { Horizon } from '../events/horizon.ts'
import type { Runner } from '../postgres/store.ts'
import { type KeepRules, type PrunedRow, pruneBatch } from './prune.sql.ts'

const batch = 500

/** The retention rules that the settings define. */
export function keepRulesOf(config: Config): KeepRules {
  return {
    succeededMs: config.keepMs,
    othersMs: config.keepFailedMs,
    keysMs: config.keepKeysMs,
    capMs: config.eventCapMs,
  }
}

/** What one prune removed. */
export interface Pruned {
  removed: number
  forced: number
  unreadBy: string[]
  /** Whether it ran out of time before everything was removed. */
  isCut: boolean
  /** Whether it stopped because another process was pruning. */
  isBusy: boolean
}

/** Removes what is due, batch by batch, until nothing more can be removed or the time is up. */
export async function prune(store: Runner, horizon: Horizon, rules: KeepRules, forMs: number): Promise<Pruned> {
  const untilMs = performance.now() + forMs
  const { safe } = await horizon.look()
  const sum: Pruned = { removed: 0, forced: 0, unreadBy: [], isCut: false, isBusy: false }
  for (;;) {
    const [done] = await store.run(pruneBatch, { ...rules, safe, most: batch })
    const { removed, forced, is_full, unread_by } = done as PrunedRow
    sum.removed += removed
    sum.forced += forced
    sum.unreadBy = unread_by ?? sum.unreadBy
    if (!is_full) return { ...sum, isBusy: is_full === null }
    if (performance.now() >= untilMs) return { ...sum, isCut: true }
  }
}
