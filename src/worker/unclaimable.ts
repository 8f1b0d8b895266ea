/**
 * Jobs that no claim can take, because something that belongs to them makes the statement fail: a value that can't be read, outputs that are too
 * large together, a trigger of another program. A claim covers all lanes in one statement, so one such job would keep every worker from
 * claiming anything. When a claim fails for a reason that does not pass, the due jobs are tried apart, in claims that are rolled back, and those
 * that fail alone are postponed. They are tried again later, because the cause may have been removed by then.
 *
 * There may be thousands of them, more than can be postponed before the first are due again. So a search is short, and a lane that it did not
 * get through is claimed apart from all others (see apart-lanes.ts).
 *
 * A claim through gates fails in the same way, and is undone as a whole. The jobs that it would take are not the ones that are due first, so its
 * gates are asked which ones these are, in a transaction that is rolled back as well.
 */
import { messageOf } from '../errors/errors.ts'
import { priorities } from '../job/define.ts'
import { isHeldUp, isPassing } from '../postgres/connection.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { isNobodys } from '../transitions/batch.ts'
import type { Claim } from './claim.sql.ts'
import type { GatedLane } from './gated-lanes.ts'
import type { Lane } from './lanes.ts'
import { claimOnly, claimOnlyGated, dueIds, type GatedTrial, gatedIds, postponeJobs } from './unclaimable.sql.ts'

const delayMs = 60_000
/** As many as a claim may have looked at in one lane. */
const mostPerLane = 1_000
/** After so many bad jobs, the others are left for the next search. */
const mostRefused = 20
/** Into how many parts jobs that can't be claimed together are split. */
const ways = 8
/** How long a trial may take, and how long the server keeps its locks if this process freezes in the middle of it. */
const bounds = { answerMs: 2_000, silentMs: 1_000 }

/** What it takes to try jobs apart. */
export interface TrialParts {
  store: Store
  onError: (error: unknown) => void
}

/** What a search found: how many jobs it postponed, and the lanes in which there may be more that can't be claimed. */
export interface Unclaimable<L = Lane> {
  postponed: number
  lanes: L[]
}

interface BadJob {
  id: string
  error: string
}

/** Whether a claim that failed with this error may have met a job that can't be claimed. */
export function mayBeUnclaimable(error: unknown): boolean {
  return !isPassing(error)
}

/** Postpones the due jobs that can't be claimed, up to a limit. */
export function postponeUnclaimable(parts: TrialParts, claim: Omit<Claim, 'most'>): Promise<Unclaimable> {
  return searchEach(parts, claim.lanes, async (lane) => {
    const trial = { ...claim, lanes: [lane], floors: [], mostBytes: Number.MAX_VALUE }
    const search = new Search(parts.store, (runner, ids) => runner.run(claimOnly, { ...trial, most: ids.length, ids }))
    await search.run(await idsOf(parts.store, [lane]))
    return search
  })
}

/** The same for jobs that wait at gates. */
export function postponeUnclaimableAtGates(parts: TrialParts, claim: GatedTrial): Promise<Unclaimable<GatedLane>> {
  const { store } = parts
  return searchEach(parts, claim.lanes, async (lane) => {
    const search = new Search(store, (runner, ids) => runner.run(claimOnlyGated, { ...claim, ids }))
    const picked = await pickedIds(store, { ...claim, lanes: [lane] })
    // if the gates can't tell, it may be one of the jobs that they would let through, or one of the gates
    await search.run(picked ?? (await idsOf(store, atAnyPriority(lane))))
    search.mayBeMore ||= picked === undefined
    return search
  })
}

async function searchEach<L>(
  parts: TrialParts,
  all: readonly L[],
  searchIn: (lane: L) => Promise<Search>,
): Promise<Unclaimable<L>> {
  const bad: BadJob[] = []
  const lanes: L[] = []
  for (const lane of all) {
    const search = await searchIn(lane)
    bad.push(...search.bad)
    if (search.mayBeMore) lanes.push(lane)
    if (bad.length >= mostRefused) break
  }
  return { postponed: bad.length === 0 ? 0 : await postpone(parts, bad), lanes }
}

async function postpone({ store, onError }: TrialParts, bad: BadJob[]): Promise<number> {
  const params = { ids: bad.map(({ id }) => id), errors: bad.map(({ error }) => error), delayMs }
  const later = new Set((await store.run(postponeJobs, params)).map(({ id }) => id))
  for (const { id, error } of bad)
    if (later.has(id)) onError(new Error(`Job ${id} can't be claimed, so it was postponed by a minute: ${error}`))
  return later.size
}

async function idsOf(store: Store, lanes: Lane[]): Promise<string[]> {
  return (await store.run(dueIds, { lanes, mostPerLane })).map(({ id }) => id)
}

function atAnyPriority(lane: GatedLane): Lane[] {
  return priorities.map((priority) => ({ ...lane, priority }))
}

/** The jobs that a claim through gates would take; undefined if asking fails. */
async function pickedIds(store: Store, claim: GatedTrial): Promise<string[] | undefined> {
  let ids: string[] = []
  const error = await undone(store, async (runner) => {
    ids = (await runner.run(gatedIds, claim)).map(({ id }) => id)
  })
  return error === undefined ? ids : undefined
}

/** A search of one lane. It goes into depth first: where all jobs are bad, it finds some of them soon. */
class Search {
  readonly #store: Store
  readonly #claim: (runner: Runner, ids: readonly string[]) => Promise<unknown>
  readonly bad: BadJob[] = []
  /** Whether some jobs that can't be claimed together were not tried one by one, or can be claimed one by one. */
  mayBeMore = false

  constructor(store: Store, claim: (runner: Runner, ids: readonly string[]) => Promise<unknown>) {
    this.#store = store
    this.#claim = claim
  }

  async run(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const error = await undone(this.#store, (runner) => this.#claim(runner, ids))
    if (error === undefined) return
    if (isHeldUp(error)) this.mayBeMore = true
    else if (ids.length === 1) this.bad.push({ id: ids[0] as string, error: messageOf(error) })
    else await this.#searchParts(ids)
  }

  async #searchParts(ids: readonly string[]): Promise<void> {
    const before = this.bad.length
    const size = Math.ceil(ids.length / ways)
    for (let from = 0; from < ids.length; from += size) {
      if (this.bad.length >= mostRefused) {
        this.mayBeMore = true
        return
      }
      await this.run(ids.slice(from, from + size))
    }
    if (this.bad.length === before) this.mayBeMore = true
  }
}

/** Thrown to undo a trial. */
class Undo extends Error {}

/** Does this and undoes it. Resolves with the error if it can't be done. */
async function undone(store: Store, work: (runner: Runner) => Promise<unknown>): Promise<unknown> {
  const trial = store.transaction(async (runner) => {
    await work(runner)
    throw new Undo()
  }, bounds)
  return trial.catch((error) => {
    if (isNobodys(error)) throw error
    return error instanceof Undo ? undefined : error
  })
}
