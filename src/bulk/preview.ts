import type { JobId } from '../job/id.ts'
import type { Runner } from '../postgres/store.ts'
import { type JobSummary, summaryOf } from '../reads/job.ts'
import type { StoredFilter } from './filter.ts'
import { lookForJobs, mostAfter } from './find.ts'

/** How many jobs a bulk operation would change, and some of them. */
export interface BulkPreview {
  /** How many jobs match, counted up to 100,000 and for up to two seconds. */
  count: number
  /** Whether there may be more than `count`. */
  isAtLeast: boolean
  /** The newest of them, up to 10. */
  sample: JobSummary[]
  /** The `before` to count on from; null if everything was counted. */
  next: JobId | null
}

/** Counts up to this many jobs. */
export const mostCounted = 100_000
const mostMs = 2_000
const sampleSize = 10
const pageSize = 2_000

/** Counts matching jobs, look by look. Each look is bounded, and so are their number and the time for all of them. */
export async function countJobs(store: Runner, filter: StoredFilter, before: string | null): Promise<BulkPreview> {
  const untilMs = performance.now() + mostMs
  const sample: JobSummary[] = []
  let [count, next, most] = [0, before, pageSize]
  do {
    const limit = Math.min(pageSize, mostCounted - count)
    const found = await lookForJobs(store, filter, { below: next, seq: null, limit, most })
    most = mostAfter({ limit, most }, found.rows.length)
    count += found.rows.length
    sample.push(...found.rows.slice(0, sampleSize - sample.length).map(summaryOf))
    next = found.next
  } while (next !== null && count < mostCounted && performance.now() < untilMs)
  return { count, isAtLeast: next !== null, sample, next: next as JobId | null }
}
