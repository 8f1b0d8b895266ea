import { makeHorizon } from '../events/horizon.ts'
import type { FinalState } from '../job/machine.ts'
import { flagOf } from '../job/validate-argument.ts'
import { previewPrune } from '../reaper/prune.sql.ts'
import { keepRulesOf, prune } from '../reaper/prune.ts'
import { pause } from '../service/service.ts'
import type { EngineParts } from './parts.ts'

/** What a prune removed, or would remove. */
export interface PruneReport {
  /** The number of finished jobs removed, including fan-out items; 0 in a dry run. */
  removed: number
  /** In a dry run, the jobs that are due, by kind and state. Jobs with unread events or pending deliveries are counted, but stay for now. */
  due: { kind: string; state: FinalState; jobs: number; items: number }[]
  /** In a dry run, whether there are more than the oldest million finished jobs that were checked. */
  isPartial: boolean
  /** Groups that have not read the events of jobs that are due. */
  unreadBy: string[]
}

const mostLookedAt = 1_000_000
const turnMs = 60_000

/** Removes all finished jobs whose retention period has expired, or only reports them. */
export async function pruneNow(
  { store, config }: EngineParts,
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<PruneReport> {
  const rules = keepRulesOf(config)
  if (flagOf('dryRun', dryRun)) {
    const rows = await store.run(previewPrune, { ...rules, most: mostLookedAt })
    const due = rows.map(({ kind, state, jobs, items }) => ({ kind, state: state as FinalState, jobs, items }))
    return { removed: 0, due, isPartial: rows[0]?.walked === mostLookedAt, unreadBy: [] }
  }
  const horizon = makeHorizon(store)
  let removed = 0
  for (;;) {
    const done = await prune(store, horizon, rules, turnMs)
    removed += done.removed
    if (done.isBusy) await pause(20)
    else if (!done.isCut) return { removed, due: [], isPartial: false, unreadBy: done.unreadBy }
  }
}
