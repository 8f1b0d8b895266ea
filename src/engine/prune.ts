import { HoldfastError } from '../errors/errors.ts'
import { makeHorizon } from '../events/horizon.ts'
import type { FinalState } from '../job/machine.ts'
import { flagOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { previewPrune, pruneHolders } from '../reaper/prune.sql.ts'
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
  /** In a dry run, the server processes (pids) whose transactions keep jobs from being removed at the moment. Usually empty. */
  blockedBy: number[]
}

const mostLookedAt = 1_000_000
const turnMs = 60_000
/** How long to wait for another process that is removing jobs, batch by batch. */
const busyMs = 10_000

/** Removes all finished jobs whose retention period has expired, or only reports them. */
export async function pruneNow(
  { store, config }: EngineParts,
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<PruneReport> {
  const rules = keepRulesOf(config)
  if (flagOf('dryRun', dryRun)) {
    const rows = await store.run(previewPrune, { ...rules, most: mostLookedAt })
    const due = rows.map(({ kind, state, jobs, items }) => ({ kind, state: state as FinalState, jobs, items }))
    return {
      removed: 0,
      due,
      isPartial: rows[0]?.walked === mostLookedAt,
      unreadBy: [],
      blockedBy: await holdersIn(store),
    }
  }
  const horizon = makeHorizon(store)
  let removed = 0
  let freeAtMs = performance.now()
  for (;;) {
    const done = await prune(store, horizon, rules, turnMs)
    removed += done.removed
    if (!done.isBusy) freeAtMs = performance.now()
    if (performance.now() - freeAtMs > busyMs) throw blocked(removed, await holdersIn(store))
    if (done.isBusy) await pause(20)
    else if (!done.isCut) return { removed, due: [], isPartial: false, unreadBy: done.unreadBy, blockedBy: [] }
  }
}

async function holdersIn(store: Runner): Promise<number[]> {
  return (await store.run(pruneHolders, {})).map(({ pid }) => pid)
}

function blocked(removed: number, pids: number[]): HoldfastError {
  return new HoldfastError(
    'database_timeout',
    `Removed ${removed} jobs, then waited ${busyMs / 1000} s for another transaction that has locked holdfast.prune_mark (pid ${pids.join(', ') || 'unknown'}). Try again once it has ended; if it hangs, end it with pg_terminate_backend.`,
    { details: { pids } },
  )
}
