/**
 * Jobs that no claim can take, because something that belongs to them makes the statement fail: a value that can't be read, outputs that are too
 * large together, a trigger of another program. A claim covers all lanes in one statement, so one such job would keep every worker from
 * claiming anything. When a claim fails for a reason that does not pass, the due jobs are tried apart, in claims that are rolled back, and those
 * that fail alone are postponed. They are tried again later, because the cause may have been removed by then.
 *
 * There may be thousands of them. So a search is short, and a lane that it did not get through is claimed apart from all others (see
 * apart-lanes.ts). Further searches of that lane postpone for longer: otherwise the first jobs would be due again before the last are found.
 */
import { messageOf } from '../errors/errors.ts'
import { isHeldUp, isPassing } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { isNobodys } from '../transitions/batch.ts'
import type { Claim } from './claim.sql.ts'
import type { Lane } from './lanes.ts'
import { claimOnly, dueIds, postponeJobs } from './unclaimable.sql.ts'

const delayMs = { least: 60_000, most: 15 * 60_000 }
/** As many as a claim may have looked at in one lane. */
const mostPerLane = 1_000
/** After so many bad jobs, or so long, the others are left for the next search. */
const mostRefused = 20
const longestMs = 500
/** Into how many parts jobs that can't be claimed together are split. */
const ways = 8
const trialMs = 2_000

/** What it takes to try jobs apart. */
export interface TrialParts {
  store: Store
  onError: (error: unknown) => void
}

/** What a search found: how many jobs it postponed, and the lanes in which there may be more that can't be claimed. */
export interface Unclaimable {
  postponed: number
  lanes: Lane[]
}

interface BadJob {
  id: string
  error: string
}

/** Whether a claim that failed with this error may have met a job that can't be claimed. */
export function mayBeUnclaimable(error: unknown): boolean {
  return !isPassing(error)
}

/** Postpones the due jobs that can't be claimed, up to a limit. `searches`: how many were made before, if these lanes are claimed apart. */
export async function postponeUnclaimable(
  parts: TrialParts,
  claim: Omit<Claim, 'most'>,
  searches = 0,
): Promise<Unclaimable> {
  const most = searches === 0 ? mostRefused : mostPerLane
  const bad: BadJob[] = []
  const lanes: Lane[] = []
  for (const lane of claim.lanes) {
    const search = new Search(parts.store, { ...claim, lanes: [lane], floors: [], mostBytes: Number.MAX_VALUE }, most)
    await search.run(lane)
    bad.push(...search.bad)
    if (search.mayBeMore) lanes.push(lane)
    if (bad.length >= most) break
  }
  const byMs = Math.min(delayMs.most, delayMs.least * 2 ** searches)
  return { postponed: bad.length === 0 ? 0 : await postpone(parts, bad, byMs), lanes }
}

async function postpone({ store, onError }: TrialParts, bad: BadJob[], byMs: number): Promise<number> {
  const params = { ids: bad.map(({ id }) => id), errors: bad.map(({ error }) => error), delayMs: byMs }
  const later = new Set((await store.run(postponeJobs, params)).map(({ id }) => id))
  const postponed = bad.filter(({ id }) => later.has(id))
  const first = postponed[0]
  if (first) onError(new Error(`${subjectOf(first, postponed.length)} by ${byMs / 60_000} min: ${first.error}`))
  return later.size
}

function subjectOf({ id }: BadJob, count: number): string {
  if (count === 1) return `Job ${id} can't be claimed, so it was postponed`
  return `Job ${id} and ${count - 1} more can't be claimed, so they were postponed`
}

/** A search of one lane. It goes into depth first: where all jobs are bad, it finds some of them soon. */
class Search {
  readonly #store: Store
  readonly #claim: Omit<Claim, 'most'>
  readonly #most: number
  readonly #untilMs = performance.now() + longestMs
  readonly bad: BadJob[] = []
  /** Whether some jobs that can't be claimed together were not tried one by one, or can be claimed one by one. */
  mayBeMore = false

  constructor(store: Store, claim: Omit<Claim, 'most'>, most: number) {
    this.#store = store
    this.#claim = claim
    this.#most = most
  }

  async run(lane: Lane): Promise<void> {
    const due = await this.#store.run(dueIds, { lanes: [lane], mostPerLane })
    if (due.length > 0) await this.#search(due.map(({ id }) => id))
  }

  async #search(ids: readonly string[]): Promise<void> {
    const error = await this.#try(ids)
    if (error === undefined) return
    if (isHeldUp(error)) this.mayBeMore = true
    else if (ids.length === 1) this.bad.push({ id: ids[0] as string, error: messageOf(error) })
    else await this.#searchParts(ids)
  }

  async #searchParts(ids: readonly string[]): Promise<void> {
    const before = this.bad.length
    const size = Math.ceil(ids.length / ways)
    for (let from = 0; from < ids.length; from += size) {
      // one that goes on finds at least some of them, however slow it is
      const isLate = this.bad.length > 0 && performance.now() >= this.#untilMs
      if (this.bad.length >= this.#most || isLate) {
        this.mayBeMore = true
        return
      }
      await this.#search(ids.slice(from, from + size))
    }
    if (this.bad.length === before) this.mayBeMore = true
  }

  /** Claims these and undoes it. Resolves with the error if they can't be claimed. */
  async #try(ids: readonly string[]): Promise<unknown> {
    const trial = this.#store.transaction(
      async (runner) => {
        await runner.run(claimOnly, { ...this.#claim, most: ids.length, ids })
        throw new Undo()
      },
      { answerMs: trialMs },
    )
    return trial.catch((error) => {
      if (isNobodys(error)) throw error
      return error instanceof Undo ? undefined : error
    })
  }
}

/** Thrown to undo a trial. */
class Undo extends Error {}
