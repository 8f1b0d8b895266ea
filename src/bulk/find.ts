import type { Runner } from '../postgres/store.ts'
import type { JobRow } from '../reads/job.sql.ts'
import { lookAt } from '../reads/page.ts'
import type { StoredFilter } from './filter.ts'
import { narrowJobs } from './find.sql.ts'

/** Where a look starts, and how far it may go. */
export interface LookOptions {
  /** Only ids below this one; null for the start. */
  below: string | null
  /** The position in the log at which the operation was asked for; null for now. */
  seq: string | null
  /** The largest number of jobs to return, and of rows to scan. */
  limit: number
  most: number
}

/** What a look found. Rows after `next` were not scanned; null if it reached the end. */
export interface Found {
  rows: JobRow[]
  next: string | null
}

const mostScanned = 20_000

/** How many rows to scan next: as many as jobs are wanted, or more and more while few of them match. */
export function mostAfter({ limit, most }: { limit: number; most: number }, found: number): number {
  return 2 * found >= limit ? limit + 50 : Math.min(mostScanned, 4 * most)
}

/** How long a look may spend on reading inputs, and how many inputs it reads between two looks at the clock. */
const textMs = 500
const textBatch = 100
const anySeq = '9223372036854775807'

/** One bounded look for matching jobs, newest first. It may find none although more follow: only `next` tells. */
export async function lookForJobs(store: Runner, filter: StoredFilter, options: LookOptions): Promise<Found> {
  const { kind, queue, tenant, states, items, since, until, text } = filter
  const { below, limit, most, seq } = options
  const page = { kind, queue, tenant, states, hasItems: items, from: since, limit, most }
  const { rows, next } = await lookAt(store, { ...page, below: below === null || below > until ? until : below })
  if (seq === null && !isNarrow(filter)) return { rows, next }
  const untilMs = performance.now() + textMs
  const fitting = new Set<string>()
  const step = text === null ? rows.length : textBatch
  for (let from = 0; from < rows.length; from += step) {
    const part = rows.slice(from, from + step)
    for (const { id } of await narrow(store, filter, part, seq)) fitting.add(id)
    const isLast = from + step >= rows.length
    if (!isLast && performance.now() >= untilMs)
      return { rows: matching(rows, fitting), next: part.at(-1)?.id as string }
  }
  return { rows: matching(rows, fitting), next }
}

/** Whether a filter has conditions that a page of jobs does not check. */
function isNarrow({ error, errorText, text, endedSince, endedUntil }: StoredFilter): boolean {
  return [error, errorText, text, endedSince, endedUntil].some((condition) => condition !== null)
}

function matching(rows: readonly JobRow[], fitting: ReadonlySet<string>): JobRow[] {
  return rows.filter(({ id }) => fitting.has(id))
}

function narrow(store: Runner, filter: StoredFilter, rows: readonly JobRow[], seq: string | null) {
  const { error, errorText, text, endedSince, endedUntil } = filter
  // a quotation mark in a value is escaped in the stored JSON
  const jsonText = text === null ? null : JSON.stringify(text).slice(1, -1)
  const ids = rows.map(({ id }) => id)
  return store.run(narrowJobs, { ids, seq: seq ?? anySeq, error, errorText, text, jsonText, endedSince, endedUntil })
}
