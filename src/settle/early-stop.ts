import type { Store } from '../postgres/store.ts'
import { stopBarriers } from './fan-out.sql.ts'

/** How long stopping barriers may delay the outcomes behind it; the reaper does the rest. */
const stopMs = 1_000

/** Cancels the remaining items of barriers in which too many failed. If this process dies first, the reaper does it. */
export async function stopExceeded(
  { store, onError }: { store: Store; onError: (error: unknown) => void },
  ids: string[],
): Promise<void> {
  if (ids.length === 0) return
  const reason = 'More items of this fan-out failed than it tolerates.'
  const stop = () => store.run(stopBarriers, { ids, reason }, stopMs).catch((error) => void onError(error))
  // rows that another statement had locked are probably free by now
  if ((await stop())?.[0]?.skipped) await stop()
}
