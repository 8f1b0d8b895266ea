import type { Statement } from '../postgres/sql.ts'
import type { Runner } from '../postgres/store.ts'
import { type Duty, type DutyReport, report } from './duty.ts'
import { moveEach } from './move-each.ts'
import type { OrphanName } from './orphans.ts'
import { quarantineJobs } from './quarantine.sql.ts'
import { Resting } from './resting-orphans.ts'
import { type findAbandoned, type OrphanRow, reviveJobs } from './revive.sql.ts'

/** How many orphans are moved at once. Usually more than fail together, so that good ones don't wait behind a batch of bad ones. */
const batch = 2_000

/**
 * Makes a duty that finds orphans and moves them. Orphans that cannot be moved rest before they are tried again, so that they neither hide
 * the ones behind them nor take up the leader's time.
 */
export function reviving(name: string, find: typeof findAbandoned): Duty {
  const resting = new Resting()
  return {
    name,
    everyMs: 0,
    budget: 'own',
    async run(store) {
      const found = resting.split(await store.run(find, { limit: batch + resting.size }))
      const due = found.due.slice(0, batch)
      const startedMs = performance.now()
      const done = await moveOn(store, due)
      resting.refused(done.failed, performance.now() - startedMs)
      const isCrowded = due.length === batch
      if (isCrowded) resting.held(done.held)
      return { ...done, held: [...done.held, ...found.resting], isFull: done.isFull && isCrowded }
    },
  }
}

/** Revives orphans, and quarantines those whose crash budget is spent. */
export async function moveOn(store: Runner, found: OrphanRow[]): Promise<DutyReport> {
  const spent = await moveWith(
    store,
    quarantineJobs,
    found.filter((row) => row.is_spent),
  )
  const others = await moveWith(
    store,
    reviveJobs,
    found.filter((row) => !row.is_spent),
  )
  return report({
    revived: others.moved.map(classified),
    quarantined: spent.moved.map(classified),
    failed: [...spent.failed, ...others.failed],
    held: [...spent.held, ...others.held],
    // only moved rows count: rows that always fail must not keep the sweep spinning
    isFull: spent.moved.length + others.moved.length > 0,
  })
}

function moveWith(store: Runner, move: Statement<{ orphans: OrphanRow[] }, { id: string }>, found: OrphanRow[]) {
  return moveEach(
    store,
    found,
    (runner, orphans) => runner.run(move, { orphans }),
    // a quarantine ends the job, so its barrier counts it
    ({ id, lease_id }) => ({ id, leaseId: lease_id, barrier: move === quarantineJobs ? 'counts' : 'none' }),
  )
}

function classified(row: OrphanRow) {
  return { ...row, orphan: classOf(row) }
}

function classOf({ rung, stage }: OrphanRow): OrphanName {
  if (rung === 'deadline passed') return 'hung-handler'
  if (rung === 'session row gone') return 'session-row-gone'
  if (rung === 'itself') return 'claimed-by-ended-session'
  return stage > 0 ? 'later-stage-dead-session' : 'running-dead-session'
}
