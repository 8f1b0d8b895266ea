import { highestId, type JobId, lowestId } from '../job/id.ts'
import { can, isFinal, type State } from '../job/machine.ts'
import type { Runner } from '../postgres/store.ts'
import type { JobRow } from './job.sql.ts'
import { type JobSummary, summaryOf } from './job.ts'
import { filterOf, type ListOptions } from './list-filter.ts'
import { type PageFilter, pages } from './page.sql.ts'

/** A page of jobs, newest first. It may be short, even empty, although more jobs follow: check `next`. */
export interface Page {
  jobs: JobSummary[]
  /** The `before` of the next page; null if this was the last. It may be the id of a job that does not match the filter. */
  next: JobId | null
}

const mostRows = 3_000
const mostRowsOfList = 20_000
/** How many scans a page of the tenant `default` takes at most, because no index finds its jobs among those of others. */
const mostLooksOfDefault = 12

/** One page. Most are full after a few rows; only if not, many are scanned. */
export async function pageOf(store: Runner, options: ListOptions): Promise<Page> {
  const { limit, tenant } = filterOf(options)
  // a page that is short because of other tenants would show how active they are
  if (tenant === 'default') return lookOn(store, options, mostLooksOfDefault)
  const first = await lookFor(store, options, Math.min(mostRows, 2 * limit + 50))
  return first.next === null || first.jobs.length === limit ? first : lookFor(store, options, mostRows)
}

/**
 * All matching jobs, up to the limit. Rare ones take many scans, but each is bounded, so no statement runs for long. To be able to stop in
 * between, use pages.
 */
export async function listOf(store: Runner, options: ListOptions): Promise<JobSummary[]> {
  return (await lookOn(store, options, Number.POSITIVE_INFINITY)).jobs
}

/** Scans until there are enough jobs, or none are left, or it has made `mostLooks` scans. */
async function lookOn(store: Runner, options: ListOptions, mostLooks: number): Promise<Page> {
  const { limit } = filterOf(options)
  const jobs: JobSummary[] = []
  let next: JobId | null = null
  let most = Math.min(mostRows, 2 * limit + 50)
  for (let looks = 0; looks < mostLooks && jobs.length < limit; looks++) {
    const behind: ListOptions = next === null ? options : { ...options, before: next }
    const page = await lookFor(store, { ...behind, limit: limit - jobs.length }, most)
    jobs.push(...page.jobs)
    next = page.next
    if (next === null) break
    most = Math.min(mostRowsOfList, 4 * most)
  }
  return { jobs, next }
}

async function lookFor(store: Runner, options: ListOptions, most: number): Promise<Page> {
  const given = filterOf(options)
  const { rows, next } = await lookAt(store, {
    ...given,
    below: given.before ?? highestId,
    from: given.from ?? lowestId,
    most,
  })
  return { jobs: rows.map(summaryOf), next }
}

/** One bounded look for jobs, newest first. It scans only where jobs can match: live ones, finished ones, or only those that did not succeed. */
export async function lookAt(store: Runner, filter: PageFilter): Promise<{ rows: JobRow[]; next: JobId | null }> {
  const found = await Promise.all(scansOf(filter).map((statement) => store.run(statement, filter)))
  const scanned = found.flat()
  const reached = scanned.map((row) => row.reached).reduce(highestOf, null)
  const rows = scanned
    .filter((row): row is typeof row & JobRow => row.id !== null)
    // there may be unscanned rows of another table in between
    .filter((row) => reached === null || row.id >= reached)
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, filter.limit)
  const last = rows.length === filter.limit ? (rows.at(-1)?.id ?? null) : reached
  return { rows, next: last as JobId | null }
}

function scansOf({ states, tenant }: PageFilter) {
  const isDefault = tenant === 'default'
  const isOne = tenant !== null && !isDefault
  const wants = (which: (state: State) => boolean) => states === null || states.some((state) => which(state as State))
  const wantsOnlyRunning = !wants((state) => !isFinal(state) && !can('finish', state))
  const liveScan = wantsOnlyRunning ? pages.running : isOne ? pages.liveOfTenant : pages.live
  const live = wants((state) => !isFinal(state)) ? [liveScan] : []
  if (!wants(isFinal)) return live
  if (isOne) return [...live, pages.finishedOfTenant]
  if (states !== null && !states.includes('succeeded')) return [...live, pages.trouble]
  return [...live, isDefault ? pages.finishedOfDefault : pages.finished]
}

function highestOf(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
