import type { ItemResult } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { FinalState } from '../job/machine.ts'
import type { Runner } from '../store/store.ts'
import { itemResults } from './barrier.sql.ts'

const page = 500

/** The results of a barrier's items, in order, read page by page: never all in memory. */
export async function* resultsOf(store: Runner, barrierId: string): AsyncGenerator<ItemResult<unknown, unknown>> {
  for (let after = -1; ; ) {
    const rows = await store.run(itemResults, { barrierId, after, limit: page })
    for (const row of rows)
      yield { ...row, id: row.id as JobId, state: row.state as FinalState, output: row.output ?? null }
    if (rows.length < page) return
    after = rows.at(-1)?.position ?? after
  }
}
