import {
  closeAbandoned,
  expireBarriers,
  findStrays,
  findUnstopped,
  type HealedRow,
  joinDrained,
  openBarriers,
  recountBarriers,
  requeueWaiting,
  waitingJobs,
} from '../barrier/heal.sql.ts'
import { stopBarriers } from '../settle/fan-out.sql.ts'
import { runBatch } from '../store/batch.ts'
import type { Runner } from '../store/store.ts'
import type { Duty, DutyReport, Healed } from './duties.ts'
import { failedOf, healing, healMs } from './healing.ts'
import { report } from './report.ts'

const batch = 100

const joinDrainedBarriers: Duty = {
  name: 'joinDrained',
  everyMs: 0,
  run: healing({
    heal: (runner, only) => runner.run(joinDrained, { limit: batch, only }),
    find: openBarriers,
    tell: healedOf,
  }),
}

/** What was wrong with a drained barrier: three different troubles have three different messages. */
function healedOf(row: HealedRow): Healed {
  const late = row.was_expired ? ', past its expiry' : ''
  if (row.was_negative)
    return {
      ...names(row),
      orphan: 'negative-count',
      message: `a counter was negative${late}; counted anew by the ledger, and joined`,
    }
  if (row.lost > 0)
    return {
      ...names(row),
      orphan: 'items-lost',
      message: `${row.lost} items are gone from the ledger${late}; they count as failed, and it was joined`,
    }
  return {
    ...names(row),
    orphan: 'drained-not-joined',
    message: `all work was done${late}, but the continuation had never fired; joined`,
  }
}

function names({ id, job_id }: { id: string; job_id: string }): { barrier: string; job: string } {
  return { barrier: id, job: job_id }
}

const expire: Duty = {
  name: 'expireBarriers',
  everyMs: 0,
  run: healing({
    heal: (runner, only) => runner.run(expireBarriers, { limit: batch, only }),
    find: openBarriers,
    tell: (row): Healed => ({
      ...names(row),
      orphan: 'barrier-expired',
      message: row.is_stopped
        ? 'expired with work left; the rest is cancelled'
        : 'expired with work left whose workers had died; put off once more',
    }),
  }),
}

function whyStopped(row: Unstopped): string {
  if (row.is_abandoned === undefined) return 'The fan-out that this item belongs to is gone.'
  if (row.is_abandoned) return 'The job that this item belongs to has ended.'
  if (row.is_expired) return 'The fan-out expired before this item had ended.'
  return 'More items of this fan-out failed than it tolerates.'
}

const stopUnstopped: Duty = {
  name: 'stopUnstopped',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(findUnstopped, { limit: batch })
    const all = await stopEach(store, rows, (row, cancelled) => ({
      ...names(row),
      orphan: row.is_abandoned ? 'fan-out-abandoned' : 'stop-unfinished',
      message: `${cancelled.length} items were still live; cancelled`,
    }))
    await store.run(closeAbandoned, { limit: batch }, healMs)
    return all
  },
}

const stopStrays: Duty = {
  name: 'stopStrays',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(findStrays, { limit: batch })
    return stopEach(store, rows, ({ id }, cancelled) => ({
      barrier: id,
      job: cancelled[0]?.id ?? id,
      orphan: 'item-without-barrier',
      message: `${cancelled.length} items had no barrier any more; cancelled`,
    }))
  },
}

type Unstopped = { id: string; is_abandoned?: boolean; is_expired?: boolean }

/** Cancels what is left of barriers, each by itself: one that can't be stopped, or that somebody holds, keeps no other. */
async function stopEach<Row extends Unstopped>(
  store: Runner,
  rows: readonly Row[],
  tell: (row: Row, cancelled: { id: string }[]) => Healed,
): Promise<DutyReport> {
  const all = report({})
  for (const row of rows) {
    const [told] = await runBatch(store, {
      items: [row],
      isWary: true,
      run: async (runner) => [await runner.run(stopBarriers, { ids: [row.id], reason: whyStopped(row) })],
    })
    if (told?.is === 'done') all.healed.push(tell(row, told.answer))
    else if (told) all[told.is === 'held' ? 'held' : 'failed'].push(failedOf(row, told.error))
  }
  return { ...all, isFull: rows.length === batch && all.healed.length > 0 }
}

const requeueStranded: Duty = {
  name: 'requeueWaiting',
  everyMs: 0,
  run: healing({
    heal: (runner, only) => runner.run(requeueWaiting, { limit: batch, only }),
    find: waitingJobs,
    tell: ({ id }): Healed => ({
      barrier: id,
      job: id,
      orphan: 'waiting-without-barrier',
      message: 'the job waited, but no barrier was left to join it; queued again',
    }),
  }),
}

const recount: Duty = {
  name: 'recount',
  everyMs: 10_000,
  run: healing({
    heal: (runner, only) => runner.run(recountBarriers, { quietMs: 5_000, limit: batch, only }),
    find: openBarriers,
    isOnce: true,
    tell: (row): Healed => ({
      ...names(row),
      orphan: row.was_negative ? 'negative-count' : 'counter-drift',
      message: `the counters were off by ${row.drift}; counted anew by the ledger`,
    }),
  }),
}

/** The duties of barriers. Sessions and attempts come first: an item that was revived must not count as late. */
export const barrierDuties: readonly Duty[] = [
  expire,
  stopUnstopped,
  stopStrays,
  joinDrainedBarriers,
  requeueStranded,
  recount,
]
