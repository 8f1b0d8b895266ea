import { pause } from '../service/service.ts'
import { runPatiently } from '../store/batch.ts'
import type { CancelledRow } from '../store/cancelling.sql.ts'
import type { Runner, Store } from '../store/store.ts'
import { cancelJobs, liveOnes } from './submit.sql.ts'

interface Cancel {
  ids: [string]
  tenant: string | null
  reason: string | null
  by: string | null
}

/**
 * Cancels a job. One that somebody is moving at this moment, or that another transaction holds, is tried again and again, without a
 * connection being held meanwhile. Undefined: it has ended, or there is none.
 */
export async function cancelPatiently(store: Store, params: Cancel, forMs: number): Promise<CancelledRow | undefined> {
  const untilMs = performance.now() + forMs
  for (let tries = 1; ; tries++) {
    const [told] = await runPatiently(
      store,
      { items: params.ids, run: async (runner, ids) => [await cancelOnce(runner, { ...params, ids: ids as [string] })] },
      forMs,
    )
    if (told?.is !== 'done') throw told?.error
    if (told.answer !== 'moving') return told.answer
    if (performance.now() >= untilMs) throw heldError()
    await pause(Math.min(500, 2 ** tries))
  }
}

/** Tries once. `moving`: it was not where it had been a moment before, and has not ended. */
export async function cancelOnce(runner: Runner, params: Cancel): Promise<CancelledRow | undefined | 'moving'> {
  const rows = await runner.run(cancelJobs, params)
  const row = rows.find(({ id }) => id === params.ids[0])
  if (row) return row
  const [live] = await runner.run(liveOnes, { ids: params.ids, tenant: params.tenant })
  return live ? 'moving' : undefined
}

function heldError(): Error {
  return Object.assign(new Error('Another transaction holds this job locked.'), { code: '55P03' })
}
