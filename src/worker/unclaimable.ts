/**
 * Jobs that no claim can take, because something that belongs to them makes the statement fail: a value that can't be read, outputs that are too
 * large together, a trigger of another program. A claim covers all lanes in one statement, so one such job would keep every worker from
 * claiming anything. When a claim fails for a reason that does not pass, the due jobs are tried apart, in claims that are rolled back, and those
 * that fail alone are postponed. They are tried again later, because the cause may have been removed by then.
 */
import { messageOf } from '../errors/errors.ts'
import { isPassing } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { runBatch } from '../transitions/batch.ts'
import type { Claim } from './claim.sql.ts'
import type { Lane } from './lanes.ts'
import { claimOnly, dueIds, postponeJobs } from './unclaimable.sql.ts'

const delayMs = 60_000
/** As many as a claim may have looked at in one lane. */
const mostPerLane = 1_000
/** After so many bad jobs, the others are left for the next look. */
const mostRefused = 20

/** What it takes to try jobs apart. */
export interface TrialParts {
  store: Store
  onError: (error: unknown) => void
}

/** Whether a claim that failed with this error may have met a job that can't be claimed. */
export function mayBeUnclaimable(error: unknown): boolean {
  return !isPassing(error)
}

/** Postpones the due jobs that can't be claimed. Returns how many. */
export async function postponeUnclaimable({ store, onError }: TrialParts, claim: Omit<Claim, 'most'>): Promise<number> {
  const bad: { id: string; error: string }[] = []
  for (const lane of claim.lanes) {
    if (bad.length >= mostRefused) break
    bad.push(...(await unclaimableIn(store, claim, lane)))
  }
  if (bad.length === 0) return 0
  const params = { ids: bad.map(({ id }) => id), errors: bad.map(({ error }) => error), delayMs }
  const later = new Set((await store.run(postponeJobs, params)).map(({ id }) => id))
  for (const { id, error } of bad)
    if (later.has(id)) onError(new Error(`Job ${id} can't be claimed, so it was postponed by a minute: ${error}`))
  return later.size
}

async function unclaimableIn(
  store: Store,
  claim: Omit<Claim, 'most'>,
  lane: Lane,
): Promise<{ id: string; error: string }[]> {
  const due = await store.run(dueIds, { lanes: [lane], mostPerLane })
  const ids = due.map(({ id }) => id)
  const told = await runBatch(store, {
    items: ids,
    run: (_, some) =>
      tryToClaim(store, { ...claim, lanes: [lane], floors: [], most: some.length, mostBytes: Number.MAX_VALUE }, some),
    mostRefused,
  })
  return ids.flatMap((id, index) => {
    const one = told[index]
    return one?.is === 'refused' ? [{ id, error: messageOf(one.error) }] : []
  })
}

/** Thrown to undo a trial. */
class Undo extends Error {}

async function tryToClaim(store: Store, claim: Claim, ids: readonly string[]): Promise<true[]> {
  const trial = store.transaction(async (runner) => {
    await runner.run(claimOnly, { ...claim, ids })
    throw new Undo()
  })
  await trial.catch((error) => (error instanceof Undo ? undefined : Promise.reject(error)))
  return ids.map(() => true)
}
