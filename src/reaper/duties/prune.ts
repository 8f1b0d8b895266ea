import type { Config } from '../../config/config.ts'
import { type Horizon, makeHorizon } from '../../events/horizon.ts'
import { type Duty, type DutyReport, type Note, report } from '../duty.ts'
import { lookForDue, pruneHolders } from '../prune.sql.ts'
import { keepRulesOf, prune } from '../prune.ts'

/** How much of each second may be spent on pruning. */
const budgetMs = 100
const everyMs = 1_000
/** A larger difference means that the clock of the database or of this machine is wrong, so it is unknown what is old. */
const mostSkewMs = 3_600_000
/** How long another transaction may keep this one from pruning before there is a complaint. A batch takes far less. */
const patienceMs = 5_000
/** How often the same complaint is repeated, and how far behind readers may be before there is one. */
const remindMs = 60_000

/** Removes finished jobs whose retention time is over. It runs alongside the sweep, so that it never delays a recovery. */
export function pruning(config: Config): Duty {
  const rules = keepRulesOf(config)
  const isTimeFor = reminder()
  let horizon: Horizon | undefined
  let busySinceMs: number | undefined
  return {
    name: 'prune',
    everyMs,
    async run(store): Promise<DutyReport> {
      const [seen] = await store.run(lookForDue, rules)
      const { now_ms: nowMs = 0, overdue_ms: overdueMs = null, has_chores: hasChores = false } = seen ?? {}
      const pruned = { removed: 0, overdueMs: Math.max(0, overdueMs ?? 0) }
      // run now and then even if nothing is due, to record how far outcomes are complete before someone holds a transaction open
      if (overdueMs === null && !hasChores && !isTimeFor('mark')) return report({ pruned })
      const skewMs = nowMs - Date.now()
      if (Math.abs(skewMs) > mostSkewMs)
        return report({ pruned, notes: isTimeFor('clock') ? [clocksDiffer(skewMs)] : [] })
      horizon ??= makeHorizon(store)
      const { removed, forced, unreadBy, isBusy } = await prune(store, horizon, rules, budgetMs)
      busySinceMs = isBusy ? (busySinceMs ?? performance.now()) : undefined
      if (busySinceMs !== undefined && performance.now() - busySinceMs > patienceMs && isTimeFor('busy'))
        return report({ pruned, notes: [isHeldUp((await store.run(pruneHolders, {})).map(({ pid }) => pid))] })
      const isLate = unreadBy.length > 0 && pruned.overdueMs > remindMs && isTimeFor('unread')
      const notes = forced > 0 ? [wasForced(forced, unreadBy)] : isLate ? [isUnread(unreadBy)] : []
      return report({ pruned: { ...pruned, removed }, notes })
    },
  }
}

/** Answers whether it is time for something, at most once per `remindMs` for each name. */
function reminder(): (what: string) => boolean {
  const lastMs = new Map<string, number>()
  return (what) => {
    if (performance.now() - (lastMs.get(what) ?? Number.NEGATIVE_INFINITY) < remindMs) return false
    lastMs.set(what, performance.now())
    return true
  }
}

function clocksDiffer(skewMs: number): Note {
  return {
    isError: true,
    message: 'not removing finished jobs: the clocks of the database and this machine differ by more than an hour',
    facts: { skewMs: Math.round(skewMs) },
  }
}

function isHeldUp(pids: number[]): Note {
  return {
    isError: true,
    message: 'not removing finished jobs: another transaction has locked holdfast.prune_mark; end it if it hangs',
    facts: { pids },
  }
}

function isUnread(groups: string[]): Note {
  return {
    isError: true,
    message: 'finished jobs are due to be removed, but some groups have not read their events',
    facts: { groups },
  }
}

function wasForced(jobs: number, groups: string[]): Note {
  return {
    isError: true,
    message:
      'removed finished jobs at the cap although groups had not read their events or deliveries were pending; those events and deliveries are lost',
    facts: { jobs, ...(groups.length > 0 ? { groups } : {}) },
  }
}
