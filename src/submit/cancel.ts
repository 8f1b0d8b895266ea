import { runPatiently } from '../store/batch.ts'
import type { CancelledRow } from '../store/cancelling.sql.ts'
import type { Store } from '../store/store.ts'
import { cancelJobs } from './submit.sql.ts'

/** Cancels a job. One that another transaction holds is tried again and again, without a connection being held meanwhile. */
export async function cancelPatiently(
  store: Store,
  params: { ids: [string]; tenant: string | null; reason: string | null; by: string | null },
  forMs: number,
): Promise<CancelledRow | undefined> {
  const [told] = await runPatiently(
    store,
    {
      items: params.ids,
      jobOf: (id) => id,
      async run(runner, ids): Promise<(CancelledRow | undefined)[]> {
        const rows = await runner.run(cancelJobs, { ...params, ids })
        return ids.map((id) => rows.find((row) => row.id === id))
      },
    },
    forMs,
  )
  if (told?.is !== 'done') throw told?.error
  return told.answer
}
