import type { ItemResult } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { FinalState } from '../job/machine.ts'
import type { Runner } from '../postgres/store.ts'
import { itemResults } from './fan-out.sql.ts'

const mostRows = 500
const mostBytes = 8_388_608

/**
 * The results of a barrier's items, in order, read page by page: never all in memory, and fewer at a time the larger they are. `reads` makes of
 * a stored value what its reader gets.
 */
export async function* resultsOf(
  store: Runner,
  barrierId: string,
  reads: (stored: unknown) => unknown = (stored) => stored,
): AsyncGenerator<ItemResult<unknown, unknown>> {
  for (let after = -1, limit = 8; ; ) {
    const rows = await store.run(itemResults, { barrierId, after, limit })
    let pageBytes = 0
    for (const { bytes, ...row } of rows) {
      pageBytes += bytes
      const output = row.output === null || row.output === undefined ? null : await reads(row.output)
      yield { ...row, id: row.id as JobId, state: row.state as FinalState, item: await reads(row.item), output }
    }
    if (rows.length < limit) return
    after = rows.at(-1)?.position ?? after
    // grows in steps, because the next results may be larger than those seen so far
    limit = Math.max(1, Math.min(mostRows, 8 * limit, Math.floor((mostBytes * rows.length) / (pageBytes + 1))))
  }
}
