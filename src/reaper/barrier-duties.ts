import {
  closeAbandoned,
  expireBarriers,
  findStrays,
  findUnstopped,
  type HealedRow,
  joinDrained,
  recountBarriers,
  requeueWaiting,
} from '../barrier/heal.sql.ts'
import { stopBarriers } from '../settle/fan-out.sql.ts'
import type { Duty, Healed } from './duties.ts'
import { report } from './report.ts'

const batch = 100

const joinDrainedBarriers: Duty = {
  name: 'joinDrained',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(joinDrained, { limit: batch })
    return report({ healed: rows.map(healedOf), isFull: rows.length === batch })
  },
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
  async run(store) {
    const rows = await store.run(expireBarriers, { limit: batch })
    const healed = rows.map(
      (row): Healed => ({
        ...names(row),
        orphan: 'barrier-expired',
        message: row.is_stopped
          ? 'expired with work left; the rest is cancelled'
          : 'expired with work left whose workers had died; put off once more',
      }),
    )
    return report({ healed, isFull: rows.length === batch })
  },
}

function whyStopped(row: { is_abandoned: boolean; is_expired: boolean }): string {
  if (row.is_abandoned) return 'The job that this item belongs to has ended.'
  if (row.is_expired) return 'The fan-out expired before this item had ended.'
  return 'More items of this fan-out failed than it tolerates.'
}

const stopUnstopped: Duty = {
  name: 'stopUnstopped',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(findUnstopped, { limit: batch })
    const healed: Healed[] = []
    for (const row of rows) {
      const reason = whyStopped(row)
      const cancelled = await store.run(stopBarriers, { ids: [row.id], reason })
      const orphan = row.is_abandoned ? 'fan-out-abandoned' : 'stop-unfinished'
      healed.push({ ...names(row), orphan, message: `${cancelled.length} items were still live; cancelled` })
    }
    await store.run(closeAbandoned, { limit: batch })
    return report({ healed, isFull: rows.length === batch })
  },
}

const stopStrays: Duty = {
  name: 'stopStrays',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(findStrays, { limit: batch })
    const healed: Healed[] = []
    for (const { id } of rows) {
      const cancelled = await store.run(stopBarriers, {
        ids: [id],
        reason: 'The fan-out that this item belongs to is gone.',
      })
      healed.push({
        barrier: id,
        job: cancelled[0]?.id ?? id,
        orphan: 'item-without-barrier',
        message: `${cancelled.length} items had no barrier any more; cancelled`,
      })
    }
    return report({ healed, isFull: rows.length === batch })
  },
}

const requeueStranded: Duty = {
  name: 'requeueWaiting',
  everyMs: 0,
  async run(store) {
    const rows = await store.run(requeueWaiting, { limit: batch })
    const healed = rows.map(
      ({ id }): Healed => ({
        barrier: id,
        job: id,
        orphan: 'waiting-without-barrier',
        message: 'the job waited, but no barrier was left to join it; queued again',
      }),
    )
    return report({ healed, isFull: rows.length === batch })
  },
}

const recount: Duty = {
  name: 'recount',
  everyMs: 10_000,
  async run(store) {
    const rows = await store.run(recountBarriers, { quietMs: 5_000, limit: batch })
    const healed = rows.map(
      (row): Healed => ({
        ...names(row),
        orphan: row.was_negative ? 'negative-count' : 'counter-drift',
        message: `the counters were off by ${row.drift}; counted anew by the ledger`,
      }),
    )
    return report({ healed })
  },
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
