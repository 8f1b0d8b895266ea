import type { Runner } from '../../../postgres/store.ts'
import { stopBarriers } from '../../../settle/fan-out.sql.ts'
import { runBatch } from '../../../transitions/batch.ts'
import { type DutyReport, type Healed, report } from '../../duty.ts'
import { batch, failedOf } from './healing.ts'

/** A barrier with items that must not go on. Without `is_abandoned`, the barrier itself is gone. */
interface Unstopped {
  id: string
  is_abandoned?: boolean
  is_expired?: boolean
}

/** Cancels the remaining items of barriers, one barrier at a time: one that can't be stopped, or that someone holds, delays no other. */
export async function stopEach<Row extends Unstopped>(
  store: Runner,
  rows: readonly Row[],
  tell: (row: Row, cancelled: { id: string }[]) => Healed,
): Promise<DutyReport> {
  const all = report({})
  let isCut = false
  for (const row of rows) {
    const [told] = await runBatch(store, {
      items: [row],
      isWary: true,
      run: async (runner) => [await runner.run(stopBarriers, { ids: [row.id], reason: whyStopped(row) })],
    })
    if (told?.is === 'done') {
      // empty if its items have ended in the meantime, or another transaction holds all of them
      if (told.answer.length > 0) all.healed.push(tell(row, told.answer))
      isCut ||= told.answer[0]?.is_cut === true
    } else if (told) all[told.is === 'held' ? 'held' : 'failed'].push(failedOf(row, told.error))
  }
  return { ...all, isFull: isCut || (rows.length === batch && all.healed.length > 0) }
}

function whyStopped(row: Unstopped): string {
  if (row.is_abandoned === undefined) return 'The fan-out that this item belongs to is gone.'
  if (row.is_abandoned) return 'The job that this item belongs to has ended.'
  if (row.is_expired) return 'The fan-out expired before this item had ended.'
  return 'More items of this fan-out failed than it tolerates.'
}
