import type { Store } from '#holdfast/postgres/store'
import type { ClaimBatch } from '#holdfast/transitions/claim.sql'
import { type ClaimedRow, rowsOf } from '#holdfast/worker/claim-batch'
import { claimGated } from '#holdfast/worker/gated-claim.sql'

/** Claims jobs of one kind through their gates, as a worker does. */
export async function claimThroughGates(
  store: Store,
  { sessionId, queue, kind, most }: { sessionId: number; queue: string; kind: string; most: number },
): Promise<ClaimedRow[]> {
  const rows = await store.run(claimGated, {
    sessionId,
    lanes: [{ queue, kind, stageCount: 1 }],
    most,
    mostBytes: Number.MAX_VALUE,
    deadlinesMs: JSON.stringify({ [kind]: [60_000] }),
    isSuspect: false,
    after: '',
  })
  return rowsOf(
    rows.filter((row): row is ClaimBatch => row.lease_id !== null),
    sessionId,
  )
}
