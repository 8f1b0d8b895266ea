/**
 * Jobs that no claim can take, because something that belongs to them makes the statement fail: a value that can't be read, outputs that are too
 * large together, a trigger of another program. A claim covers all lanes in one statement, so one such job would keep every worker from
 * claiming anything. When a claim fails for a reason that does not pass, the due jobs are tried apart, in claims that are rolled back, and those
 * that fail alone are postponed. They are tried again later, because the cause may have been removed by then.
 *
 * A claim through gates fails in the same way, and is undone as a whole. The jobs that it would take are not the ones that are due first, so its
 * gates are asked which ones these are, in a transaction that is rolled back as well.
 */
import { messageOf } from '../errors/errors.ts'
import { isPassing } from '../postgres/connection.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { runBatch } from '../transitions/batch.ts'
import type { Claim } from './claim.sql.ts'
import type { Lane } from './lanes.ts'
import { claimOnly, claimOnlyGated, dueIds, type GatedTrial, gatedIds, postponeJobs } from './unclaimable.sql.ts'

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
export async function postponeUnclaimable(parts: TrialParts, claim: Omit<Claim, 'most'>): Promise<number> {
  const bad: Bad[] = []
  for (const lane of claim.lanes) {
    if (bad.length >= mostRefused) break
    bad.push(...(await unclaimableIn(parts.store, claim, lane)))
  }
  return postpone(parts, bad)
}

/** The same for jobs that wait at gates. */
export async function postponeUnclaimableAtGates(parts: TrialParts, claim: GatedTrial): Promise<number> {
  const { store } = parts
  const picked = await undone(store, (runner) => runner.run(gatedIds, claim))
  const ids = picked.map(({ id }) => id)
  const bad = await refusedOf(store, ids, (some) =>
    undone(store, (runner) => runner.run(claimOnlyGated, { ...claim, ids: some })),
  )
  return postpone(parts, bad)
}

interface Bad {
  id: string
  error: string
}

async function postpone({ store, onError }: TrialParts, bad: Bad[]): Promise<number> {
  if (bad.length === 0) return 0
  const params = { ids: bad.map(({ id }) => id), errors: bad.map(({ error }) => error), delayMs }
  const later = new Set((await store.run(postponeJobs, params)).map(({ id }) => id))
  for (const { id, error } of bad)
    if (later.has(id)) onError(new Error(`Job ${id} can't be claimed, so it was postponed by a minute: ${error}`))
  return later.size
}

async function unclaimableIn(store: Store, claim: Omit<Claim, 'most'>, lane: Lane): Promise<Bad[]> {
  const due = await store.run(dueIds, { lanes: [lane], mostPerLane })
  const ids = due.map(({ id }) => id)
  const trial = { ...claim, lanes: [lane], floors: [], mostBytes: Number.MAX_VALUE }
  return refusedOf(store, ids, (some) =>
    undone(store, (runner) => runner.run(claimOnly, { ...trial, most: some.length, ids: some })),
  )
}

/** Which of these jobs fail alone. */
async function refusedOf(
  store: Store,
  ids: string[],
  tryToClaim: (ids: string[]) => Promise<unknown>,
): Promise<Bad[]> {
  const told = await runBatch(store, {
    items: ids,
    run: async (_, some) => {
      await tryToClaim(some)
      return some.map(() => true)
    },
    mostRefused,
  })
  return ids.flatMap((id, index) => {
    const one = told[index]
    return one?.is === 'refused' ? [{ id, error: messageOf(one.error) }] : []
  })
}

/** Thrown to undo a trial. */
class Undo extends Error {}

/** Runs this and rolls it back. */
async function undone<Row>(store: Store, run: (runner: Runner) => Promise<Row[]>): Promise<Row[]> {
  let rows: Row[] = []
  const trial = store.transaction(async (runner) => {
    rows = await run(runner)
    throw new Undo()
  })
  await trial.catch((error) => (error instanceof Undo ? undefined : Promise.reject(error)))
  return rows
}
