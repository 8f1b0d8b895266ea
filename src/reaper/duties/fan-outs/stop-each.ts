import { lowestId } from '../../../job/id.ts'
import { isCancelled } from '../../../postgres/connection.ts'
import type { Page } from '../../../postgres/page.ts'
import type { Runner } from '../../../postgres/store.ts'
import { stopBarriers } from '../../../settle/fan-out.sql.ts'
import { runBatch, type Told } from '../../../transitions/batch.ts'
import { type CancelledRow, mostAtOnce } from '../../../transitions/cancel.sql.ts'
import { type DutyReport, type Healed, report } from '../../duty.ts'
import { Walk } from '../../walk.ts'
import { batch, failedOf } from './healing.ts'

/** A barrier with items that must not go on. Without `is_abandoned`, the barrier itself is gone. */
interface Unstopped {
  id: string
  is_abandoned?: boolean
  is_expired?: boolean
}

/** How long one run may take: other duties wait. It then continues with the barriers that it did not reach. */
const mostMs = 1_000
/** How long one statement may take. */
const answerMs = 1_000
/** By how much the number of items per statement is lowered on a server that needs longer than that, and the lowest that it gets. */
const factor = 10
const fewest = 5

/**
 * Cancels the remaining items of barriers, one barrier at a time: one that can't be stopped, or that someone holds, delays no other. On a slow
 * server, it cancels fewer items per statement: one that is cancelled for its length is undone, and would be so each time.
 */
export class Stopper {
  #limit = mostAtOnce
  readonly #walk = new Walk(lowestId, batch)

  async stop<Row extends Unstopped>(
    store: Runner,
    find: (page: Page<string>) => Promise<Row[]>,
    tell: (row: Row, cancelled: { id: string }[]) => Healed,
  ): Promise<DutyReport> {
    const rows = await this.#walk.next(find)
    const untilMs = performance.now() + mostMs
    const all = report({})
    let hasMore = rows.length === batch
    for (const [index, row] of rows.entries()) {
      if (performance.now() >= untilMs) {
        hasMore = true
        this.#walk.continueAfter(rows[index - 1] ?? row)
        break
      }
      const told = await this.#stopOne(store, row)
      if (told.is === 'done') {
        // empty if its items have ended in the meantime, or another transaction holds all of them
        if (told.answer.length > 0) all.healed.push(tell(row, told.answer))
        hasMore ||= told.answer[0]?.is_cut === true
      } else all[told.is === 'held' ? 'held' : 'failed'].push(failedOf({ id: row.id, error: told.error }))
    }
    // what can't be stopped must not keep the sweep going
    return { ...all, isFull: hasMore && all.healed.length > 0 }
  }

  async #stopOne(store: Runner, row: Unstopped): Promise<Told<CancelledRow[]>> {
    const startedMs = performance.now()
    const [told] = (await runBatch(store, {
      items: [row],
      isWary: true,
      answerMs,
      run: async (runner) => [
        await runner.run(stopBarriers, { ids: [row.id], reason: whyStopped(row), limit: this.#limit }),
      ],
    })) as [Told<CancelledRow[]>]
    if (told.is === 'held' && isCancelled(told.error)) this.#limit = Math.max(fewest, Math.floor(this.#limit / factor))
    else if (told.is === 'done' && performance.now() - startedMs < answerMs / factor)
      this.#limit = Math.min(mostAtOnce, this.#limit * 2)
    return told
  }
}

function whyStopped(row: Unstopped): string {
  if (row.is_abandoned === undefined) return 'The fan-out that this item belongs to is gone.'
  if (row.is_abandoned) return 'The job that this item belongs to has ended.'
  if (row.is_expired) return 'The fan-out expired before this item had ended.'
  return 'More items of this fan-out failed than it tolerates.'
}
